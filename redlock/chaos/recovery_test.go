package chaos

// recovery_test.go: the time to the first grant when a quorum is back, and the size of a
// daemon after all faults against that of a new one.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"redlockd/pool/faulty"
)

const (
	// promptly is what is aimed at, from the return of a quorum to a grant.
	promptly = 50 * time.Millisecond
	// outage is long enough for a daemon to have given its masters up.
	outage = time.Second
)

// absence is a way in which a majority is away and comes back.
type absence struct {
	name       string
	begin, end func(s *stand, master int)
}

func absences() []absence {
	each := func(f func(*faulty.Relay)) func(*stand, int) {
		return func(s *stand, master int) {
			for _, d := range s.daemons {
				f(d.links[master])
			}
		}
	}
	return []absence{
		{"stopped", func(s *stand, i int) { s.masters[i].Stop() }, func(s *stand, i int) { s.masters[i].Cont() }},
		{"out of reach", each(func(l *faulty.Relay) { l.Pause() }), each(func(l *faulty.Relay) { l.Resume() })},
		{"refusing", each(func(l *faulty.Relay) { l.Refuse(); l.Cut() }), each((*faulty.Relay).Accept)},
	}
}

// returns of a majority in each of the ways, in a run of some length.
const returns = 3

// recover takes a majority away and brings it back, in several ways. All times are
// printed. A run that is not one of many tests at once also has ceilings for them:
// five times the aim for the median, twenty times for each, on a machine that may
// have other things to do. A time in which it stood still for longer than the aim
// proves nothing about the daemon, and is taken again, a few times.
func (r *run) recover() {
	r.t.Helper()
	ctx, cancel := context.WithCancel(r.t.Context())
	var watch sync.WaitGroup
	watch.Go(func() { r.nemesis.watchMachine(ctx) })
	defer watch.Wait()
	defer cancel()
	rounds := 1
	if r.long {
		rounds = returns
	}
	var measured []time.Duration // while the machine did not stand still
	for _, a := range absences() {
		var took []time.Duration
		for again := 0; len(took) < rounds; {
			back, given, err := r.firstGrant(a)
			if err != nil {
				r.t.Errorf("after a majority was %s: %v", a.name, err)
				break
			}
			for _, d := range r.stand.daemons {
				d.awaitVotes()
			}
			one, stalled := given-back, r.nemesis.stood(0, back, given) > promptly
			if stalled && again < 3 {
				again++
				continue
			}
			took = append(took, one)
			if !stalled {
				measured = append(measured, one)
			}
			if r.long && !stalled && one > 20*promptly {
				r.t.Errorf("first grant %v after a majority that was %s came back, want %v and never more than %v", one, a.name, promptly, 20*promptly)
			}
		}
		r.figures.firstGrants = append(r.figures.firstGrants, took...)
		r.t.Logf("first grant after a majority was %s: %v (aim %v)", a.name, took, promptly)
	}
	sorted := slices.Sorted(slices.Values(measured))
	if n := len(sorted); r.long && n > 0 && sorted[n/2] > 5*promptly {
		r.t.Errorf("half of the first grants after the return of a majority took %v or more, want %v: %v", sorted[n/2], promptly, sorted)
	}
}

// firstGrant returns when the majority was back, and when a daemon granted.
func (r *run) firstGrant(a absence) (back, given time.Duration, err error) {
	const key, tagged = "recovery:before", "{recovery:before}:after" // of one group
	first := r.stand.groupOf(key) * r.stand.groupSize()
	beyond := first + r.stand.minority() + 1
	for i := first; i < beyond; i++ {
		a.begin(r.stand, i)
	}
	c := r.caller(0)
	c.pinned = r.stand.daemons[0]
	defer c.leave()
	unknown := eventually(func() bool {
		_, err := c.ask("DLOCK", key, 100)
		return err != nil && strings.HasPrefix(err.Error(), "NOQUORUM")
	})
	time.Sleep(outage)
	others := r.servesOthers(c, r.stand.groupOf(key))
	for i := first; i < beyond; i++ {
		a.end(r.stand, i)
	}
	back = r.record.Now()
	if !unknown {
		return 0, 0, errors.New("DLOCK was answered without a majority")
	}
	at, err := c.lockAndUnlock(tagged)
	return back, r.record.At(at), errors.Join(others, err)
}

// servesOthers locks a key of each other group.
func (r *run) servesOthers(c *caller, without int) error {
	for group := range r.stand.plan.groups {
		if group == without {
			continue
		}
		key := "recovery:other"
		for i := 0; r.stand.groupOf(key) != group; i++ {
			key = fmt.Sprint("recovery:other:", i)
		}
		if _, err := c.lockAndUnlock(key); err != nil {
			return fmt.Errorf("group g%d lacks a majority, and g%d does not serve: %w", without+1, group+1, err)
		}
	}
	return nil
}

// slack is by how much two daemons that do the same may differ.
const slack = 4

// perConnection bounds the goroutines of a connection to a master: the library reads and
// writes with two once commands of several callers have met on it, and a task sends.
const perConnection = 3

// compareWithNew: what a daemon has kept of all it has been through is what one
// that was just started has. It is the end of the daemons.
func (r *run) compareWithNew() {
	r.t.Helper()
	fresh := r.stand.startDaemon()
	fresh.awaitVotes()
	for db := range r.stand.plan.databases { // it connects to each when it is used
		if _, err := (&caller{stand: r.stand, answers: r.answers, pinned: fresh, db: db}).lockAndUnlock("new"); err != nil {
			r.t.Error(err)
		}
	}
	time.Sleep(rest)
	descriptors := fresh.descriptors()
	for i, d := range r.stand.daemons {
		if !eventually(func() bool { return !d.hasPendingReleases() && d.descriptors() <= descriptors+slack }) {
			r.t.Errorf("daemon %d has %d descriptors open, a new one %d; it owes something: %v", i, d.descriptors(), descriptors, d.hasPendingReleases())
		}
	}
	own, _ := fresh.goroutines()
	connections := len(r.stand.masters) * max(r.stand.plan.databases, 1)
	for i, d := range r.stand.daemons {
		was := len(d.Output())
		n, ofConnections := d.goroutines()
		r.t.Logf("daemon %d: %d goroutines and %d of connections to masters, a new one %d, which has %d descriptors", i, n, ofConnections, own, descriptors)
		if n > own+slack || n == 0 || ofConnections > perConnection*connections {
			r.t.Errorf("daemon %d ended with %d goroutines and %d of %d connections to masters, a new one with %d:\n%s", i, n, ofConnections, connections, own, d.Output()[was:])
		}
	}
}
