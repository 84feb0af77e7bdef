package redlock

// storm_test.go: many clients contend for one key, through any daemon or none.

import (
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"redlockd/pool"
	"redlockd/redlock/checker"
)

// The checker sees every call; the masters are read when all is over.
func TestStorm_OnOneKeyThroughTwoDaemonsAndNoneNeverHasTwoHolders(t *testing.T) {
	if testing.Short() {
		t.Skip("a storm is evidence: make test-long")
	}
	c := newCluster(t, 5, time.Second)
	record := checker.NewRecorder(nil)
	daemons := []*daemon{c.daemon(timeout(impatient)), c.daemon(timeout(impatient))} // what is left to expire blocks the key for less
	c.storm(record, daemons, 32, 8, 30, func(w *witness) { w.visit("k") }, func(f *foreigner) { f.visit("k") },
		func(h checker.History) bool {
			ours, theirs := grants(h)
			return ours > 0 && theirs > 0
		})
	h := checked(t, record)
	ours, theirs := grants(h)
	t.Logf("%d grants by daemons, %d by foreign clients, %d other calls", ours, theirs, len(h)-ours-theirs)
	if ours == 0 || theirs == 0 {
		t.Errorf("%d grants by daemons and %d by foreign clients: nobody contended", ours, theirs)
	}
	for _, d := range daemons {
		n := d.Counters()
		t.Logf("a daemon: %d grants, %d refusals, %d split votes, %d without a quorum", n.Acquired, n.Refused, n.Split, n.NoQuorum)
		d.oneFurtherSeal()
	}
	eventually(t, "no key is left", func() bool { return c.empty(0, 1, 2, 3, 4) })
}

// retry is how long a client waits, at most, before it tries again: if seventy
// of them tried all the time, hardly any client would ever have a quorum.
const retry = 100 * time.Millisecond

// visit tries once, and holds the key for a moment: mostly it is released, now
// and then prolonged before, or left to expire.
func (w *witness) visit(key Key) {
	g, ok := w.acquire(key, 50*time.Millisecond+rand.N(250*time.Millisecond))
	if !ok {
		lull(retry)
		return
	}
	lull(time.Millisecond)
	switch n := rand.N(200); {
	case n == 0:
		return
	case n < 40:
		w.prolong(key, g.Token, 500*time.Millisecond)
	}
	w.release(key, g.Token)
}

func (f *foreigner) visit(key string) {
	token := string(NewToken())
	if !f.acquire(key, token, 200*time.Millisecond) {
		lull(retry)
		return
	}
	lull(time.Millisecond)
	f.release(key, token)
}

// grants of a history, with a fence and without.
func grants(h checker.History) (ours, theirs int) {
	for i := range h {
		switch e := &h[i]; {
		case e.Op != checker.Acquire || e.Outcome != checker.OK:
		case e.Fence != 0:
			ours++
		default:
			theirs++
		}
	}
	return ours, theirs
}

// Two daemons whose clocks have nothing to do with each other order the grants
// of hot keys, at the price of at most one further seal each.
func TestStorm_FencesOfTwoDaemonsAreStrictlyOrdered(t *testing.T) {
	if testing.Short() {
		t.Skip("a storm is evidence: make test-long")
	}
	wanted := int64(100_000)
	if raceDetector {
		wanted = 4_000
	}
	c := newCluster(t, 3, 10*time.Second)
	one, two := c.daemon(), c.daemon(wrongBy(3*time.Second))
	crowd(t, []*daemon{one, two}, wanted)
	for i, d := range []*daemon{one, two} {
		n := d.Counters()
		t.Logf("daemon %d: %d grants, %d of them with a second seal, %d refusals, %d splits", i+1, n.Acquired, n.SecondSeals, n.Refused, n.Split)
		d.oneFurtherSeal()
		if n.Acquired < wanted/10 {
			t.Errorf("daemon %d got %d grants of %d: the daemons did not contend", i+1, n.Acquired, wanted)
		}
	}
}

// oneFurtherSeal wants no grant to have needed more than one, unless a voter
// failed in between, which shows as a seal that was not good.
func (d *daemon) oneFurtherSeal() {
	d.t.Helper()
	n, faults := d.Counters(), d.engine.Pool.Counters()
	if n.SecondSeals > n.Acquired || n.ThirdSeals > faults.VoidSeals+faults.BreakerOpened {
		d.t.Errorf("%d second seals for %d grants, %d third ones; %d seals were bad, %d breakers opened",
			n.SecondSeals, n.Acquired, n.ThirdSeals, faults.VoidSeals, faults.BreakerOpened)
	}
}

// One daemon alone proposes in the order of its queues, so its first seal always fits.
func TestStorm_OneDaemonNeedsNoSecondSeals(t *testing.T) {
	if testing.Short() {
		t.Skip("a storm is evidence: make test-long")
	}
	wanted := int64(20_000)
	if raceDetector {
		wanted = 4_000
	}
	one := newCluster(t, 3, 10*time.Second).daemon()
	crowd(t, []*daemon{one}, wanted)
	if n := one.Counters(); n.SecondSeals != 0 {
		t.Errorf("%d of %d grants needed a second seal", n.SecondSeals, n.Acquired)
	}
}

// wrongBy is the trait of a daemon whose clock is wrong.
func wrongBy(d time.Duration) trait {
	return func(one *daemon, _ *pool.Options) { one.clock.Ahead.Store(int64(d)) }
}

// crowd takes and releases four hot keys, two clients a daemon and key, and passes the
// history to the checker. It ends with so many grants, a tenth of them at least through
// each daemon; a daemon that is starved ends it at ten times as many.
func crowd(t *testing.T, daemons []*daemon, wanted int64) {
	t.Helper()
	record := checker.NewRecorder(nil)
	var all sync.WaitGroup
	var granted atomic.Int64
	over := func() bool {
		n := granted.Load()
		starved := slices.ContainsFunc(daemons, func(d *daemon) bool { return d.Counters().Acquired < wanted/10 })
		return n >= wanted && !starved || n >= 10*wanted
	}
	for _, d := range daemons {
		for i := range 8 {
			w := d.witness(record)
			all.Go(func() {
				for !over() {
					if g, ok := w.acquire(key(i%4), 10*time.Second); ok {
						granted.Add(1)
						w.release(key(i%4), g.Token)
					} else {
						lull(time.Millisecond)
					}
				}
			})
		}
	}
	all.Wait()
	checked(t, record)
}
