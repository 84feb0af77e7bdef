// One probe: who holds which key for how long, what the call says, and what
// the script made of it.
package dropin

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// scene is the situation in which a script is run.
type scene struct {
	call  Call
	holds []Holding // of each lock
	token string
	other string // what the key holds if another token does
	ttl   int64  // ms that are left of what is held
	ask   int64  // ms that the time argument stands for; 0 if there is none
	now   int64  // ms since 1970
}

// change is what became of one key.
type change uint8

const (
	kept change = iota
	taken
	renewed
	deleted
	stolen
	odd // anything else
)

// ttlKind is the expiry that a key got.
type ttlKind uint8

const (
	ttlNone ttlKind = iota
	ttlAsked
	ttlAdded
	ttlFixed
)

// effect is a change with the expiry it gave.
type effect struct {
	change change
	ttl    ttlKind
	fixed  int64
}

// view is what was seen of one run.
type view struct {
	reply   Reply
	effects []effect
	store   *store
}

// clock of the mock masters: whole seconds, so that a point in time in seconds
// is exact. Nothing may depend on it.
const clock = 1_800_000_000_000

// clockOf is a clock by which the points in time among the arguments of a call
// lie ahead: whatever looks like one, in ms or s since 1970, is taken for one.
func clockOf(call Call) int64 {
	now := int64(clock)
	for _, arg := range call.Args {
		n, _ := parseInt(arg)
		if n > 1_000_000_000 && n < 100_000_000_000 {
			n *= 1000
		}
		if n > 1_000_000_000_000 && n < 100_000_000_000_000 {
			now = min(now, n/1000*1000-20_000)
		}
	}
	return now
}

// scene makes up a situation in which every lock is held alike. Everything the
// script may not depend on is random.
func (p *prober) scene(hold Holding) *scene {
	s := &scene{
		call:  Call{Keys: make([]string, len(p.call.Keys)), Args: slices.Clone(p.call.Args)},
		ttl:   40_001 + rand.Int64N(40)*1000 + rand.Int64N(990),
		now:   p.now - rand.Int64N(100)*1000,
		holds: make([]Holding, len(p.locks)),
	}
	for i := range s.call.Keys {
		s.call.Keys[i] = "k" + random(11)
	}
	if p.pattern != "" {
		s.call.Keys = []string{strings.TrimSuffix(p.pattern, "*") + random(11)}
	}
	for i := range s.holds {
		s.holds[i] = hold
	}
	length := 27
	if p.token >= 0 {
		length = max(len(p.call.Args[p.token]), 16)
	}
	s.other = random(length)
	s.setToken(p, random(length))
	for i := range p.free {
		s.call.Args[i] = randomLike(p.call.Args[i])
	}
	if p.time.Unit != NoTime {
		s.setAsk(p, 200_000+rand.Int64N(700)*1000)
	}
	return s
}

// setToken makes it the caller's.
func (s *scene) setToken(p *prober, token string) {
	s.token = token
	if p.token >= 0 {
		s.call.Args[p.token] = token
	}
}

// setAsk makes the time argument stand for ms.
func (s *scene) setAsk(p *prober, ms int64) {
	s.ask = ms
	if p.time.Arg > 0 {
		s.call.Args[p.time.Arg-1] = timeArgument(p.time.Unit, ms, s.now)
	}
}

func timeArgument(unit Unit, ms, now int64) string {
	switch unit {
	case Seconds:
		ms /= 1000
	case UnixMilliseconds:
		ms += now
	case UnixSeconds:
		ms = (now + ms) / 1000
	}
	return strconv.FormatInt(ms, 10)
}

// random text: it begins with a letter, and is nothing that a script knows.
func random(length int) string {
	const letters = "abcdefghijkmnpqrstuvwxyz23456789"
	b := make([]byte, length)
	for i := range b {
		b[i] = letters[rand.IntN(len(letters))]
	}
	b[0] = letters[rand.IntN(24)]
	if length > 1 {
		b[length-1] = 'x' // a near miss in letter case is another text
	}
	return string(b)
}

// randomLike is a number for a number, else text.
func randomLike(value string) string {
	if _, isNumber := parseInt(value); isNumber {
		return strconv.FormatInt(1_000_000_000+rand.Int64N(1_000_000_000), 10)
	}
	return random(12)
}

// run executes the script in a scene.
func (p *prober) run(sc *scene) view {
	p.runs++
	st := &store{
		now: sc.now, items: make(map[string]*item), declared: make(map[string]bool),
		touched: make(map[string]bool), signals: make(map[string]bool), patterns: len(p.call.Keys) == 0,
	}
	for _, key := range sc.call.Keys {
		st.declared[key] = !st.patterns
	}
	before := make([]*item, len(p.locks))
	for i, lock := range p.locks {
		before[i] = sc.held(i)
		if before[i] != nil {
			copied := *before[i]
			st.items[sc.call.Keys[lock]] = &copied
		}
	}
	call := sc.call
	if st.patterns {
		call.Keys = nil
	}
	v := view{reply: p.program.run(call, st), store: st, effects: make([]effect, len(p.locks))}
	for i, lock := range p.locks {
		key := sc.call.Keys[lock]
		st.expire(key)
		v.effects[i] = sc.effect(before[i], st.items[key])
	}
	p.note(sc, st)
	return v
}

// held is what the i-th lock holds at first.
func (s *scene) held(i int) *item {
	switch s.holds[i] {
	case Mine:
		return &item{value: s.token, expires: s.now + s.ttl}
	case Endless:
		return &item{value: s.token}
	case Other:
		return &item{value: s.other, expires: s.now + s.ttl}
	}
	return nil
}

// effect compares what a key held with what it holds.
func (s *scene) effect(before, after *item) effect {
	switch {
	case before == nil && after == nil:
		return effect{}
	case after == nil:
		return effect{change: deleted}
	case after.isList || after.value != s.token && (before == nil || before.value != after.value):
		return effect{change: odd}
	case before == nil:
		return s.expiry(taken, 0, after)
	case before.value != after.value:
		return s.expiry(stolen, 0, after)
	case before.expires == after.expires:
		return effect{}
	case before.value != s.token:
		return effect{change: odd}
	}
	return s.expiry(renewed, before.expires, after)
}

// expiry says where the new expiry comes from.
func (s *scene) expiry(c change, before int64, after *item) effect {
	left := after.expires - s.now
	switch {
	case after.expires == 0:
		return effect{change: c}
	case s.ask > 0 && left == s.ask:
		return effect{change: c, ttl: ttlAsked}
	case s.ask > 0 && before != 0 && after.expires == before+s.ask:
		return effect{change: c, ttl: ttlAdded}
	}
	return effect{change: c, ttl: ttlFixed, fixed: left}
}

// shape says what an answer of this scene has from where. In a role search
// what the key holds is taken for the master's, even if it is an argument too.
func (p *prober) shape(r Reply, sc *scene, searching bool) Shape {
	s := Shape{kind: r.Kind}
	switch r.Kind {
	case KindInt:
		held := len(sc.holds) > 0 && (sc.holds[0] == Mine || sc.holds[0] == Other)
		switch {
		case held && r.Int == sc.ttl || sc.ask > 0 && r.Int == sc.ask:
			s.parts = []part{{from: remainingMS}}
		case held && r.Int == inSeconds(sc.ttl) || sc.ask > 0 && r.Int == sc.ask/1000:
			s.parts = []part{{from: remainingS}}
		default:
			s.n = r.Int
		}
	case KindArray:
		for _, item := range r.Items {
			s.items = append(s.items, p.shape(item, sc, searching))
		}
	case KindError, KindStatus, KindBulk:
		if r.Kind == KindError && r.Int == scriptFailed {
			s.parts = []part{{from: fromScriptFail}}
			return s
		}
		holdsIt := len(sc.holds) > 0 && (sc.holds[0] == Other && r.Text == sc.other || searching && sc.holds[0] != Absent && r.Text == sc.token)
		if r.Kind == KindBulk && holdsIt || p.token < 0 && !searching && len(sc.holds) > 0 && sc.holds[0] != Absent && r.Text == sc.token {
			s.parts = []part{{from: fromMaster}}
			return s
		}
		s.parts = p.parts(r.Text, sc)
	}
	return s
}

// parts finds the random texts of a scene in an answer.
func (p *prober) parts(text string, sc *scene) []part {
	var parts []part
	for text != "" {
		at, length, from := len(text), 0, part{}
		find := func(word string, source source, n int) {
			if i := strings.Index(text, word); len(word) >= 8 && i >= 0 && i < at {
				at, length, from = i, len(word), part{from: source, n: n}
			}
		}
		for i, arg := range sc.call.Args {
			if i == p.token || p.free[i] {
				find(arg, fromArgument, i+1)
			}
		}
		for i, key := range sc.call.Keys {
			find(key, fromKey, i+1)
		}
		if at > 0 {
			parts = append(parts, part{text: text[:at]})
		}
		if length > 0 {
			parts = append(parts, from)
		}
		text = text[at+length:]
	}
	if parts == nil {
		parts = []part{{}}
	}
	return parts
}
