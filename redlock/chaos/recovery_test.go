package chaos

// recovery_test.go: how soon is there a grant when a quorum is back, and is a
// daemon that has been through everything as small as a new one?

import (
	"errors"
	"fmt"
	"strings"
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

// recover takes a majority away and brings it back, in several ways. Times are
// printed. A run that is not one of many tests at once also has a ceiling for
// them, which is ten times the aim.
func (r *run) recover(ceiling bool) {
	r.t.Helper()
	for _, a := range absences() {
		took, err := r.firstGrant(a)
		r.t.Logf("first grant after a majority was %s: %v (aim %v)", a.name, took.Round(100*time.Microsecond), promptly)
		if err != nil {
			r.t.Errorf("after a majority was %s: %v", a.name, err)
		} else if ceiling && took > 10*promptly {
			r.t.Errorf("first grant %v after a majority that was %s came back, want %v and never more than %v", took, a.name, promptly, 10*promptly)
		}
		for _, d := range r.stand.daemons {
			d.awaitVotes()
		}
	}
}

func (r *run) firstGrant(a absence) (time.Duration, error) {
	gone := r.stand.minority() + 1
	for i := range gone {
		a.begin(r.stand, i)
	}
	c := r.caller(0)
	c.pinned = r.stand.daemons[0]
	defer c.leave()
	unknown := eventually(func() bool {
		_, err := c.ask("DLOCK", "recovery:before", 100)
		return err != nil && strings.HasPrefix(err.Error(), "NOQUORUM")
	})
	time.Sleep(outage)
	for i := range gone {
		a.end(r.stand, i)
	}
	back := time.Now()
	if !unknown {
		return 0, errors.New("DLOCK was answered without a majority")
	}
	var reply any
	var err error
	if !eventually(func() bool {
		reply, err = c.ask("DLOCK", "recovery:after", 500)
		return err == nil && reply != nil
	}) {
		return 0, fmt.Errorf("nothing was granted within %v: %v, %v", patience, reply, err)
	}
	took := time.Since(back)
	_, err = c.ask("DUNLOCK", "recovery:after", reply.([]any)[0])
	return took, err
}

// slack is by how much two daemons that do the same may differ.
const slack = 4

// compareWithNew: what a daemon has kept of all it has been through is what one
// that was just started has. It is the end of the daemons.
func (r *run) compareWithNew() {
	r.t.Helper()
	fresh := r.stand.startDaemon()
	fresh.awaitVotes()
	time.Sleep(rest)
	descriptors := fresh.descriptors()
	for i, d := range r.stand.daemons {
		if !eventually(func() bool { return !d.owes() && d.descriptors() <= descriptors+slack }) {
			r.t.Errorf("daemon %d has %d descriptors open, a new one %d; it owes something: %v", i, d.descriptors(), descriptors, d.owes())
		}
	}
	goroutines := fresh.goroutines()
	for i, d := range r.stand.daemons {
		was := len(d.Output())
		n := d.goroutines()
		r.t.Logf("daemon %d: %d goroutines, a new one %d, which has %d descriptors", i, n, goroutines, descriptors)
		if n > goroutines+slack || n == 0 {
			r.t.Errorf("daemon %d ended with %d goroutines, a new one with %d:\n%s", i, n, goroutines, d.Output()[was:])
		}
	}
}
