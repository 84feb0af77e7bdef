package redlock

// modes_storm_test.go: readers and writers, permits, several keys, through two daemons
// and none, and the checker's verdict.

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"redlockd/redlock/checker"
)

// stormRounds bounds a storm that does not see what it must see.
const stormRounds = 10

// storm makes clients visit the keys: a number of clients of each daemon, and a number
// that contact the masters themselves. In a round each of them makes a number of visits.
// There are further rounds until there is enough to be checked. Each has half as many
// clients of daemons, which win most keys, and every other one half as many of the rest:
// however slow the machine is, both kinds are granted in the end.
func (c *cluster) storm(record *checker.Recorder, daemons []*daemon, each, foreigners, visits int,
	visit func(*witness), stray func(*foreigner), enough func(checker.History) bool) {
	c.t.Helper()
	if os.Getenv("REDLOCKD_LONG") != "" {
		visits *= 60
	}
	var ours []func() // the daemons in turn
	for range each {
		for _, d := range daemons {
			w := d.witness(record)
			ours = append(ours, func() { visit(w) })
		}
	}
	var theirs []func()
	for range foreigners {
		f := c.foreigner(record)
		theirs = append(theirs, func() { stray(f) })
	}
	for round := range stormRounds {
		var all sync.WaitGroup
		for _, client := range append(half(ours, round, len(daemons)), half(theirs, round/2, min(foreigners, 1))...) {
			all.Go(func() {
				for range visits {
					client()
				}
			})
		}
		all.Wait()
		if enough(record.History()) {
			c.t.Logf("enough after %d rounds", round+1)
			return
		}
	}
}

// half of the clients, so many times, but not fewer than least.
func half(clients []func(), times, least int) []func() {
	return slices.Clone(clients[:max(len(clients)>>times, least)])
}

// grantsOf is the condition of a storm that so many grants by daemons are enough.
func grantsOf(least int) func(checker.History) bool {
	return func(h checker.History) bool {
		ours, _ := grants(h)
		return ours >= least
	}
}

// checkedBy reports the checker's findings, and whether there was enough to be checked.
func checkedBy(t *testing.T, h checker.History, check func(checker.History) error, least int) {
	t.Helper()
	if err := check(h); err != nil {
		t.Error(err)
	}
	ours, theirs := grants(h)
	t.Logf("%d calls, %d grants by daemons, %d by foreign clients", len(h), ours, theirs)
	if ours < least {
		t.Errorf("%d grants, want at least %d: nothing was tried", ours, least)
	}
}

func TestStorm_ReadersAndWritersNeverMeet(t *testing.T) {
	if testing.Short() {
		t.Skip("a storm is evidence: make test-long")
	}
	c := newCluster(t, 3, time.Second)
	record := checker.NewRecorder(nil)
	together := func(h checker.History) (n int) {
		for i := range h {
			if h[i].Shared && h[i].Outcome == checker.OK {
				n++
			}
		}
		return n
	}
	enough := grantsOf(50)
	c.storm(record, []*daemon{c.daemon(), c.daemon(wrongBy(3 * time.Second))}, 8, 3, 100,
		func(w *witness) { w.readOrWrite(key(rand.N(6))) },
		func(f *foreigner) { f.visit(string(key(rand.N(6)))) },
		func(h checker.History) bool { return enough(h) && together(h) >= 10 })
	h := record.History()
	checkedBy(t, h, checker.CheckReaders, 50)
	if n := together(h); n < 10 {
		t.Errorf("%d reads: the readers were starved", n)
	}
	eventually(t, "no key is left", func() bool { return c.empty(0, 1, 2) })
}

// Over a distance several flushes of each connection are under way when it is cut.
func TestStorm_OfDistantMastersReadersAndWritersNeverMeet(t *testing.T) {
	if testing.Short() {
		t.Skip("a storm is evidence: make test-long")
	}
	t.Parallel()
	for _, trip := range []time.Duration{2 * time.Millisecond, 20 * time.Millisecond} {
		t.Run(trip.String(), func(t *testing.T) {
			c := newCluster(t, 3, 2*time.Second)
			record := checker.NewRecorder(nil)
			daemons := []*daemon{c.daemon(relayed), c.daemon(relayed)}
			for _, d := range daemons {
				for _, r := range d.relays {
					r.Delay(trip / 2)
				}
			}
			over, done := make(chan struct{}), make(chan struct{})
			var cuts atomic.Int64
			go func() {
				defer close(done)
				cutAround(daemons, 1, &cuts, over)
			}()
			enough := grantsOf(50)
			c.storm(record, daemons, 24, 1, 100, func(w *witness) { w.readOrWrite(key(rand.N(12))) },
				func(f *foreigner) { f.visit(string(key(rand.N(12)))) },
				func(h checker.History) bool { return enough(h) && cuts.Load() >= 4 })
			close(over)
			<-done
			checkedBy(t, record.History(), checker.CheckReaders, 50)
			eventually(t, "no key is left", func() bool { return c.empty(0, 1, 2) })
		})
	}
}

// readOrWrite mostly reads; some readers try to become the writer, some writers
// step down, some of both are prolonged, and some never say that they are done.
func (w *witness) readOrWrite(key Key) {
	r := LockRequest{Key: key, TTL: 60*time.Millisecond + rand.N(200*time.Millisecond), Token: NewToken()}
	if rand.N(3) > 0 {
		r.Mode = Readers
	}
	g, ok := w.acquireAs(r)
	if !ok {
		lull(20 * time.Millisecond)
		return
	}
	lull(3 * time.Millisecond)
	switch n := rand.N(10); {
	case n < 3:
		if r.Kind() == Shared {
			r.Mode = nil
		} else {
			r.Mode = Readers
		}
		w.acquireAs(r)
		lull(3 * time.Millisecond)
	case n < 5:
		w.prolong(key, g.Token, 200*time.Millisecond)
	case n == 9 && rand.N(5) == 0:
		return
	}
	w.release(key, g.Token)
}

// Every daemon is cut off from a minority of the masters, now from this one, now
// from another, so that every permit is held by another majority.
func TestStorm_PermitsAreNeverMoreThanTheyAre(t *testing.T) {
	if testing.Short() {
		t.Skip("a storm is evidence: make test-long")
	}
	t.Parallel()
	for _, of := range []struct{ masters, limit int }{{3, 2}, {5, 5}} {
		t.Run(fmt.Sprintf("%d-masters-%d-permits", of.masters, int32(of.limit)), func(t *testing.T) {
			c := newCluster(t, of.masters, 2*time.Second)
			record := checker.NewRecorder(nil)
			daemons := []*daemon{c.daemon(relayed), c.daemon(relayed), c.daemon(relayed)}
			over, done := make(chan struct{}), make(chan struct{})
			var cuts atomic.Int64
			go func() {
				defer close(done)
				cutAround(daemons, of.masters/2, &cuts, over)
			}()
			enough := grantsOf(5)
			c.storm(record, daemons, 3*of.limit, 1, 40, func(w *witness) {
				g, ok := w.acquireAs(LockRequest{Key: "k", Mode: PermitsOf(of.limit), TTL: 200*time.Millisecond + rand.N(time.Second)})
				if !ok {
					lull(30 * time.Millisecond)
					return
				}
				lull(10 * time.Millisecond)
				switch rand.N(10) {
				case 0:
					return
				case 1, 2:
					w.prolong("k", g.Token, time.Second)
				}
				w.release("k", g.Token)
			}, func(f *foreigner) { f.visit("k") },
				func(h checker.History) bool { return enough(h) && cuts.Load() >= 4 })
			close(over)
			<-done
			checkedBy(t, record.History(), checker.CheckPermits, 5)
			all := make([]int, of.masters)
			for i := range all {
				all[i] = i
			}
			eventually(t, "no key is left", func() bool { return c.empty(all...) })
		})
	}
}

// cutAround keeps every daemon from other few masters, until it is over, and counts
// how often.
func cutAround(daemons []*daemon, few int, cuts *atomic.Int64, over <-chan struct{}) {
	for ; ; cuts.Add(1) {
		for _, d := range daemons {
			out := rand.Perm(len(d.relays))[:few]
			for i, r := range d.relays {
				if slices.Contains(out, i) {
					r.Refuse()
					r.Cut()
				} else {
					r.Accept()
				}
			}
		}
		select {
		case <-over:
			for _, d := range daemons {
				for _, r := range d.relays {
					r.Accept()
				}
			}
			return
		case <-time.After(700 * time.Millisecond):
		}
	}
}

// The checker of permits detects this: clients that count the masters with a free permit
// give more than there are, with nothing but three clients that miss one master each.
func TestStorm_PermitsThatAreCountedAreMoreThanTheyAre(t *testing.T) {
	const counted = `redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[3])
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[2]) then return 0 end
redis.call('ZADD', KEYS[1], ARGV[4], ARGV[1]) return 1`
	for _, of := range []struct{ masters, limit, holders int }{{3, 2, 3}, {5, 5, 8}} {
		c := newCluster(t, of.masters, long)
		record := checker.NewRecorder(nil)
		client := record.Client()
		granted := 0
		for holder := range of.holders {
			token := fmt.Sprint("holder-", holder)
			call := client.Begin(checker.Acquire, "k", token).OfPermits(of.limit)
			yes := 0
			for j := range of.masters/2 + 1 { // only so many, each time others
				now := time.Now()
				if c.do((holder*(of.masters/2+1)+j)%of.masters, "EVAL", counted, 1, "k", token, int32(of.limit),
					now.UnixMilli(), now.Add(time.Minute).UnixMilli()) == int64(1) {
					yes++
				}
			}
			if yes > of.masters/2 {
				granted++
				call.Granted(token, time.Minute, 0)
			}
		}
		if err := checker.CheckPermits(record.History()); err == nil || granted <= of.limit {
			t.Errorf("%d masters: %d holders of %d permits, the checker reports %v", of.masters, granted, int32(of.limit), err)
		}
	}
}

// Sets of three of twelve keys, each set in its own order, beside clients that want one
// of the keys: no request ever waits while it holds something.
func TestStorm_SeveralKeysAreTakenTogetherAndNoneIsLost(t *testing.T) {
	if testing.Short() {
		t.Skip("a storm is evidence: make test-long")
	}
	c := newCluster(t, 3, time.Second)
	record := checker.NewRecorder(nil)
	c.storm(record, []*daemon{c.daemon(), c.daemon()}, 8, 4, 100, func(w *witness) {
		var keys []Key
		for _, i := range rand.Perm(12)[:3] {
			keys = append(keys, key(i))
		}
		g, ok := w.acquireAs(LockRequest{Key: keys[0], More: keys[1:], TTL: 100*time.Millisecond + rand.N(300*time.Millisecond)})
		if !ok {
			lull(15 * time.Millisecond)
			return
		}
		lull(3 * time.Millisecond)
		if rand.N(30) == 0 {
			return
		}
		for _, key := range keys {
			w.release(key, g.Token)
		}
	}, func(f *foreigner) { f.visit(string(key(rand.N(12)))) }, grantsOf(50))
	checkedBy(t, record.History(), checker.CheckSeveral, 50)
	eventually(t, "no key is left", func() bool { return c.empty(0, 1, 2) })
}
