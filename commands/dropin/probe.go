// What does an unknown script do? It is run on a mock master in situations made
// up for the purpose, with random keys, tokens and times: first to learn which
// argument is what, then to learn what it does in each situation, and then many
// times over to see whether it ever does something else (verify.go).
//
// This is no proof: a script may wait for a value that no probe has. But static.go
// has made sure that all it can ever do is use the listed commands, program.go
// that no call of it went unseen, and the master answers for itself: a vote is
// counted only if the answer is one that a probe has given.
package dropin

import (
	"errors"
	"fmt"
	"slices"
)

const (
	// More keys than any library passes; every one multiplies the probes.
	mostKeys = 16
	mostArgs = 16
)

// prober learns one script.
type prober struct {
	program *program
	call    Call // the call it came with
	locks   []int
	signals []int        // keys that are no locks
	touched map[int]bool // keys that some command was used on
	pattern string
	publish bool
	selects []string
	token   int // index into ARGV, -1 none
	time    Time
	free    map[int]bool // arguments that decide nothing
	now     int64
	coarse  bool // it counts in seconds what it is told in ms
	runs    int

	learned [holdings]situation
	mixed   []situation
	slots   bool
	prefix  int
}

// situation is what a script does in one situation.
type situation struct {
	shape   Shape
	effects []effect
	holds   []Holding // for mixed ones
}

var errRestart = errors.New("a key turned out to be no lock")

// probe classifies a script by its behaviour.
func probe(program *program, call Call) (*Class, error) {
	if len(call.Keys) > mostKeys || len(call.Args) > mostArgs {
		return nil, fmt.Errorf("it is called with %d keys and %d arguments, allowed are %d and %d", len(call.Keys), len(call.Args), mostKeys, mostArgs)
	}
	p := &prober{program: program, call: call, now: clockOf(call), token: -1, free: make(map[int]bool), touched: make(map[int]bool)}
	for range len(call.Keys) + 2 {
		p.chooseLocks()
		switch err := p.learn(); {
		case errors.Is(err, errRestart):
			continue
		case err != nil:
			return nil, err
		}
		return p.judge()
	}
	return nil, errors.New("its keys are used as different types")
}

// chooseLocks: every key is a lock until it is used as a list.
func (p *prober) chooseLocks() {
	p.locks = p.locks[:0]
	for i := range p.call.Keys {
		if !slices.Contains(p.signals, i) {
			p.locks = append(p.locks, i)
		}
	}
	if p.pattern != "" {
		p.locks = []int{0}
	}
	p.token, p.time, p.free = -1, Time{}, make(map[int]bool)
}

// note remembers what a run showed beside its outcome.
func (p *prober) note(sc *scene, st *store) {
	for i, key := range sc.call.Keys {
		if st.signals[key] && !slices.Contains(p.signals, i) {
			p.signals = append(p.signals, i)
		}
	}
	for i, key := range sc.call.Keys {
		p.touched[i] = p.touched[i] || st.touched[key]
	}
	if st.pattern != "" {
		p.pattern = st.pattern
	}
	p.publish = p.publish || st.publish
	for _, db := range st.selects {
		if !slices.Contains(p.call.Args, db) && !slices.Contains(sc.call.Args, db) {
			st.refuse("it selects a database that is not among its arguments")
		}
	}
	p.selects = append(p.selects, st.selects...)
}

// see runs a scene and gives its refusal as an error.
func (p *prober) see(sc *scene) (view, error) {
	signals, pattern := len(p.signals), p.pattern
	v := p.run(sc)
	if v.store.refused != "" {
		return v, errors.New(v.store.refused)
	}
	if len(p.signals) > signals || p.pattern != pattern {
		return v, errRestart
	}
	return v, nil
}

// learn finds the roles of the arguments and what the script does.
func (p *prober) learn() error {
	for _, step := range []func() error{p.findToken, p.findTime, p.findFree, p.learnHoldings, p.findIdle, p.learnMixed} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// findToken: the token is the argument that the script writes to a lock, or
// that makes a difference when the lock holds it.
func (p *prober) findToken() error {
	found := []int{}
	for i := range p.call.Args {
		p.token = i
		wrote, err := p.see(p.scene(Absent))
		if err != nil {
			return err
		}
		is := slices.ContainsFunc(wrote.effects, func(e effect) bool { return e.change == taken })
		if !is {
			if is, err = p.tellsApart(); err != nil {
				return err
			}
		}
		if is {
			found = append(found, i)
		}
	}
	p.token = -1
	switch len(found) {
	case 0:
		return nil
	case 1:
		p.token = found[0]
		return nil
	}
	return fmt.Errorf("it takes arguments %d and %d for the token", found[0]+1, found[1]+1)
}

// tellsApart: does it matter whether the locks hold the argument?
func (p *prober) tellsApart() (bool, error) {
	mine, other := p.scene(Mine), p.scene(Other)
	v, err := p.see(mine)
	if err != nil {
		return false, err
	}
	w, err := p.see(other)
	if err != nil {
		return false, err
	}
	return !p.shape(v.reply, mine, true).same(p.shape(w.reply, other, true)) || !sameChanges(v.effects, w.effects), nil
}

func sameChanges(a, b []effect) bool {
	return slices.EqualFunc(a, b, func(a, b effect) bool { return a.change == b.change })
}

// findTime tries each number as each kind of time until the expiry that the
// script gives follows it.
func (p *prober) findTime() error {
	sets := false
	for _, hold := range []Holding{Absent, Mine} {
		v, err := p.see(p.scene(hold))
		if err != nil {
			return err
		}
		sets = sets || slices.ContainsFunc(v.effects, func(e effect) bool { return e.ttl == ttlFixed })
	}
	for i, arg := range p.call.Args {
		if _, isNumber := parseInt(arg); i == p.token || !isNumber {
			continue
		}
		for unit := Milliseconds; unit <= UnixSeconds; unit++ {
			p.time = Time{Arg: i + 1, Unit: unit}
			if follows, err := p.follows(); follows || err != nil {
				return err
			}
		}
	}
	p.time = Time{}
	if sets {
		p.time.Unit = FixedMilliseconds
	}
	return nil
}

func (p *prober) follows() (bool, error) {
	for _, hold := range []Holding{Absent, Mine} {
		v, err := p.see(p.scene(hold))
		if err != nil {
			return false, err
		}
		for _, e := range v.effects {
			if e.ttl == ttlAsked || e.ttl == ttlAdded {
				return true, nil
			}
		}
	}
	return false, nil
}

// findFree: an argument is free if no value of it makes a difference: not the
// call's own, not a random one, none of the script's constants. All others are
// known for the value of the call alone.
func (p *prober) findFree() error {
	for i := range p.call.Args {
		if i == p.token || i == p.time.Arg-1 {
			continue
		}
		p.free[i] = true
		free, err := p.isFree(i)
		if err != nil {
			return err
		}
		if !free {
			delete(p.free, i)
		}
	}
	return nil
}

func (p *prober) isFree(i int) (bool, error) {
	free := true
	values := []string{p.call.Args[i], randomLike(p.call.Args[i])}
	_, number := parseInt(p.call.Args[i])
	for _, constant := range p.program.constants() {
		if _, ok := parseInt(constant); ok || !number {
			values = append(values, constant)
		}
	}
	for _, hold := range []Holding{Absent, Mine, Other} {
		s, err := p.situation(p.scene(hold))
		if err != nil {
			return false, err
		}
		for _, value := range values {
			sc := p.scene(hold)
			sc.call.Args[i] = value
			same, err := p.agrees(sc, s)
			if err != nil {
				return false, err
			}
			if free = free && same; !free {
				return false, nil
			}
		}
	}
	return free, nil
}

// situation runs a scene and describes it.
func (p *prober) situation(sc *scene) (situation, error) {
	v, err := p.see(sc)
	return situation{shape: p.shape(v.reply, sc, false), effects: v.effects, holds: sc.holds}, err
}

// agrees runs a scene and compares it with a description.
func (p *prober) agrees(sc *scene, s situation) (bool, error) {
	v, err := p.see(sc)
	if err != nil {
		return false, err
	}
	reply := v.reply
	if reply.Kind == KindError && reply.Int == scriptFailed {
		reply.Text = "script"
	}
	return s.shape.matches(reply, sc.call, "") && slices.Equal(v.effects, s.effects), nil
}

// learnHoldings runs every way in which all locks can be held alike.
func (p *prober) learnHoldings() error {
	for h := range p.learned {
		var err error
		if p.learned[h], err = p.situation(p.scene(Holding(h))); err != nil {
			return err
		}
	}
	if p.time.Unit == FixedMilliseconds {
		p.time.Fixed = max(firstFixed(p.learned[Absent]), firstFixed(p.learned[Mine]))
	}
	return nil
}

// findIdle: a key that no command uses is no lock, if another one is.
func (p *prober) findIdle() error {
	idle := slices.DeleteFunc(slices.Clone(p.locks), func(i int) bool { return p.touched[i] })
	if p.pattern != "" || len(idle) == 0 || len(idle) == len(p.locks) {
		return nil
	}
	p.signals = append(p.signals, idle...)
	return errRestart
}

func firstFixed(s situation) int64 {
	for _, e := range s.effects {
		if e.ttl == ttlFixed {
			return e.fixed
		}
	}
	return 0
}

// learnMixed: with several locks, the first k may be held in one way and the
// rest in another.
func (p *prober) learnMixed() error {
	p.mixed = nil
	n := len(p.locks)
	if n < 2 {
		return nil
	}
	for k := 1; k < n; k++ {
		for _, first := range []Holding{Absent, Mine, Other} {
			for _, rest := range []Holding{Absent, Mine, Other} {
				if first == rest {
					continue
				}
				sc := p.scene(rest)
				for i := range k {
					sc.holds[i] = first
				}
				s, err := p.situation(sc)
				if err != nil {
					return err
				}
				p.mixed = append(p.mixed, s)
			}
		}
	}
	return nil
}
