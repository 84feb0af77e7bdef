package chaos

// nemesis_test.go: the choice and the times of faults. One goroutine draws them, one more
// per fault under way waits for its end; all are over when strike returns.

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"redlockd/redlock/checker"
)

// fault is one kind of failure.
type fault struct {
	name   string
	weight int   // how often it is drawn, in relation to the others
	scope  scope // what it strikes
	lasts  span  // from the beginning to the end
	inject func(v *victim)
	heal   func(v *victim) // nil: nothing to do
}

// span is a range of durations. Most that are drawn are short: the cube of an
// even draw.
type span struct{ least, most time.Duration }

func (s span) draw(random *rand.Rand) time.Duration {
	x := random.Float64()
	return s.least + time.Duration(x*x*x*float64(s.most-s.least))
}

// nemesis strikes a stand with faults.
type nemesis struct {
	stand  *stand
	faults []fault
	pace   time.Duration // mean time between two faults
	random *rand.Rand
	claims *claims
	since  func() time.Duration
	// forgets reports whether a master's memory is not what it was, beyond its age.
	forgets func(master int) bool

	mu     sync.Mutex
	lines  []line
	count  map[string]int
	all    []*strike
	stalls []standstill
}

// strike is one fault, from its beginning to the end of what follows from it.
type strike struct {
	fault    string
	victim   *victim
	from, to time.Duration // to is checker.Never while it lasts
}

// line is one entry of the log of faults.
type line struct {
	at   time.Duration
	text string
}

func newNemesis(s *stand, faults []fault, seed uint64, since func() time.Duration) *nemesis {
	return &nemesis{
		stand: s, faults: faults, pace: 200 * time.Millisecond, random: rand.New(rand.NewPCG(seed, 0)),
		claims: newClaims(s), since: since, count: map[string]int{},
	}
}

// strike ends with the context, when everything is healed.
func (n *nemesis) strike(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	for pause(ctx, time.Duration(n.random.Int64N(int64(2*n.pace)))) {
		f := n.draw()
		v, ok := n.claims.claim(f.scope, n.random)
		if !ok {
			continue
		}
		lasts := f.lasts.draw(n.random)
		all.Go(func() { n.happen(ctx, f, v, lasts) })
	}
}

func (n *nemesis) draw() fault {
	total := 0
	for _, f := range n.faults {
		total += f.weight
	}
	at := n.random.IntN(total)
	for _, f := range n.faults {
		if at -= f.weight; at < 0 {
			return f
		}
	}
	panic("the weights do not add up")
}

// happen is one fault from its beginning to the end of what follows from it.
func (n *nemesis) happen(ctx context.Context, f fault, v *victim, lasts time.Duration) {
	one := &strike{fault: f.name, victim: v, from: n.since(), to: checker.Never}
	n.mu.Lock()
	n.all = append(n.all, one)
	n.mu.Unlock()
	n.note(f, v, fmt.Sprintf("begins, for %v", lasts.Round(time.Millisecond)))
	var was []string
	if f.scope == onIncarnation {
		was = n.stand.identity(v.master)
	}
	f.inject(v)
	pause(ctx, lasts)
	if f.heal != nil {
		f.heal(v)
	}
	healed := n.since()
	n.note(f, v, "is over")
	n.claims.healed(v)
	if f.scope != onMemory && f.scope != onIncarnation {
		n.over(one, healed)
		return
	}
	if f.scope == onIncarnation {
		if !n.stand.noticed(ctx, v.master) {
			return
		}
		if was != nil && slices.Equal(was, n.stand.identity(v.master)) {
			n.over(one, healed)
			n.note(f, v, "was not minded")
			n.claims.recovered(v)
			return
		}
	}
	for !n.stand.aged(v.master) || n.forgets != nil && n.forgets(v.master) {
		if !pause(ctx, 20*time.Millisecond) {
			return // it lasts until all masters vote
		}
	}
	n.over(one, n.since())
	n.note(f, v, "is forgotten")
	n.claims.recovered(v)
}

func (n *nemesis) over(one *strike, at time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	one.to = at
}

func (n *nemesis) note(f fault, v *victim, what string) {
	where := "master " + masterName(v.master)
	switch v.scope {
	case onAll:
		where = "all"
	case onLink:
		where = fmt.Sprintf("daemon %d, master %s", v.daemon, masterName(v.master))
	case onDaemon:
		where = fmt.Sprintf("daemon %d", v.daemon)
	}
	at := n.since()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lines = append(n.lines, line{at, fmt.Sprintf("%s: %s %s", where, f.name, what)})
	if strings.HasPrefix(what, "begins") {
		n.count[f.name]++
	}
}

// dump writes the log; its clock is that of the histories.
func (n *nemesis) dump(w io.Writer) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, l := range n.lines {
		if _, err := fmt.Fprintf(w, "%12v %s\n", l.at.Round(time.Microsecond), l.text); err != nil {
			return err
		}
	}
	for _, s := range n.stalls {
		if _, err := fmt.Fprintf(w, "%12v daemon %d (%d: all) does not run for %v\n", s.from.Round(time.Microsecond), s.daemon, allDaemons, (s.to - s.from).Round(time.Millisecond)); err != nil {
			return err
		}
	}
	return nil
}

// tally counts how often each fault struck.
func (n *nemesis) tally() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	names := slices.SortedFunc(maps.Keys(n.count), func(a, b string) int {
		return cmp.Or(cmp.Compare(n.count[b], n.count[a]), cmp.Compare(a, b))
	})
	parts := make([]string, len(names))
	for i, name := range names {
		parts[i] = fmt.Sprintf("%d × %s", n.count[name], name)
	}
	return strings.Join(parts, ", ")
}

// pause reports whether the context lasted that long.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
