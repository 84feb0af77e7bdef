package wait

// places_test.go: places of requests that do not wait, and windows for clients past the daemons.

import (
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"redlockd/redlock/engine"
	"redlockd/redlock/lease"
	"redlockd/redlock/redlocktest"
)

// refuse tries a lock that is held.
func (d *daemon) refuse(key string, who *lease.Requester) {
	d.T.Helper()
	if _, err := d.Acquire(lease.LockRequest{Key: engine.Key(key), TTL: long, Token: "a value", Mode: lease.Valued, Requester: who}); err == nil {
		d.T.Fatal("granted")
	}
}

func TestPlaces_AreBounded(t *testing.T) {
	t.Parallel()
	d := newEmbedded(t)
	d.Clock.Hold(maxPlaceTime) // none ends by itself
	s := &d.Queues.places
	for i := range maxPlacesOfKey + 10 {
		s.Ended(&lease.LockRequest{Key: "k", Requester: &lease.Requester{ID: int64(i)}}, engine.ErrHeld)
	}
	if n := s.count.Load(); n != maxPlacesOfKey {
		t.Errorf("%d places of one key, want %d", n, maxPlacesOfKey)
	}
	for i := range maxPlacesOfPoller + 10 { // each by another connection of a pool
		who := &lease.Requester{ID: int64(1000 + i), User: "app", Host: "10.0.0.7", LibName: "redis-py"}
		s.Ended(&lease.LockRequest{Key: engine.Key("k" + strconv.Itoa(i)), Requester: who}, engine.ErrHeld)
	}
	if n := s.count.Load(); n != maxPlacesOfKey+maxPlacesOfPoller {
		t.Errorf("%d places, want %d of one key and %d of one pool", n, maxPlacesOfKey, maxPlacesOfPoller)
	}
	for i := range maxPlaces {
		s.Ended(&lease.LockRequest{Key: engine.Key("all" + strconv.Itoa(i)), Requester: &lease.Requester{ID: int64(5000 + i)}}, engine.ErrHeld)
	}
	if n := s.count.Load(); n != maxPlaces {
		t.Errorf("%d places in all, want %d", n, maxPlaces)
	}
	d.End()
	if n := s.count.Load(); n != 0 || len(s.ofKey)+len(s.ofPoller) != 0 {
		t.Errorf("%d places are left", n)
	}
}

// Connections are one poller only if user, address and library agree and the library is known.
func TestPlaces_ArePoolsOnlyIfAllAgrees(t *testing.T) {
	t.Parallel()
	pool := lease.Requester{ID: 1, User: "app", Host: "10.0.0.7", LibName: "redis-py"}
	for _, c := range []struct {
		other lease.Requester
		same  bool
	}{
		{lease.Requester{ID: 2, User: "app", Host: "10.0.0.7", LibName: "redis-py"}, true},
		{lease.Requester{ID: 2, User: "other", Host: "10.0.0.7", LibName: "redis-py"}, false},
		{lease.Requester{ID: 2, User: "app", Host: "10.0.0.8", LibName: "redis-py"}, false},
		{lease.Requester{ID: 2, User: "app", Host: "10.0.0.7", LibName: "jedis"}, false},
		{lease.Requester{ID: 2, User: "app", Host: "10.0.0.7"}, false},
	} {
		if same := pollerOf(&pool) == pollerOf(&c.other); same != c.same {
			t.Errorf("%+v: one poller %v, want %v", c.other, same, c.same)
		}
	}
	if a, b := (lease.Requester{ID: 1, User: "app"}), (lease.Requester{ID: 2, User: "app"}); pollerOf(&a) == pollerOf(&b) {
		t.Error("connections of unknown libraries are one poller")
	}
}

// A lock that one client holds for long costs a client that polls no ticket, and a place ends.
func TestPlaces_HaveNoTicketWhileTheHolderStays(t *testing.T) {
	t.Parallel()
	d := newEmbedded(t)
	g := d.Take(lease.LockRequest{Key: "k"})
	who := &lease.Requester{ID: 7}
	p := &place{}
	for n := 0; n < 3; { // three looks at one holder
		d.refuse("k", who)
		d.Idle()
		d.Queues.places.mu.Lock()
		for _, p = range d.Queues.places.all {
			if p.holder.Kind != "" {
				n++
				p.looked = 0 // the next try looks again
			}
			if p.due || p.ticket != nil {
				t.Fatal("a ticket, though the holder has not changed")
			}
		}
		d.Queues.places.mu.Unlock()
	}
	redlocktest.Eventually(t, "another holder is noticed", func() bool {
		d.refuse("k", who)
		d.Free("k", g.Token)
		g = d.Take(lease.LockRequest{Key: "k"})
		d.Queues.places.mu.Lock()
		defer d.Queues.places.mu.Unlock()
		for _, p = range d.Queues.places.all {
			if p.holder.Kind != "" && p.ticket == nil && !p.due {
				p.looked = 0
			}
		}
		return p.due || p.ticket != nil
	})
	redlocktest.Eventually(t, "the place ends without a try", func() bool { return d.Queues.places.count.Load() == 0 })
}

func TestWindow_OpensOnceWhenAKeyHasBeenBusy(t *testing.T) {
	t.Parallel()
	d := newEmbedded(t)
	g := d.Take(lease.LockRequest{Key: "k"})
	d.Quiet()
	out := make(chan waited, 1)
	d.waitFor("w", Request{LockRequest: lease.LockRequest{Key: "k"}}, out)
	d.Quiet()
	d.mu.Lock()
	lines := d.byKey[dbKey{0, "k"}]
	ln := lines[0]
	first := d.windowLocked(lines)
	ln.busy.since = d.engine.Clock.Now() - 2*busyInterval
	ln.contender = ln.head
	inFlight := d.windowLocked(lines)
	ln.contender = nil
	opens, again := d.windowLocked(lines), d.windowLocked(lines)
	d.mu.Unlock()
	if first != nil || inFlight != nil || len(opens) == 0 || again != nil {
		t.Errorf("windows for %q at first, %q beside a request, %q when it was busy, %q at once after that", first, inFlight, opens, again)
	}
	d.Release("k", g.Token)
	if w := redlocktest.Receive(t, out); w.err != nil {
		t.Error(w.err)
	}
}

// A client past the daemons, as plain Redlock: it leaves no trace when it is refused.
func TestWindow_IsForClientsThatUseTheMastersThemselves(t *testing.T) {
	t.Parallel()
	c := redlocktest.NewCluster(t, 3, long)
	one, two := newDaemon(c), newDaemon(c)
	var over atomic.Bool
	var grants atomic.Int64
	var all sync.WaitGroup
	for _, d := range []*daemon{one, one, two, two} {
		all.Add(1)
		go func() {
			defer all.Done()
			for !over.Load() {
				out := make(chan waited, 1)
				d.waitFor("keeps", Request{LockRequest: lease.LockRequest{Key: "k"}}, out)
				w := <-out
				if w.err != nil {
					t.Error(w.err)
					return
				}
				grants.Add(1)
				d.mu.Lock()
				for _, ln := range d.queues { // it has been busy for long
					ln.busy.since = d.engine.Clock.Now() - 2*busyInterval
				}
				d.mu.Unlock()
				d.Free("k", w.grant.Token)
			}
		}()
	}
	for taken := 0; taken < 2 && grants.Load() < 500; {
		taken = 0
		for i := range c.Masters {
			if c.Do(i, "SET", "k", "straight", "NX", "PX", 60000) != nil {
				taken++
			}
		}
		if taken < 2 {
			for i := range c.Masters {
				c.Do(i, "EVAL", "if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end", 1, "k", "straight")
			}
		}
	}
	over.Store(true)
	if n := grants.Load(); n >= 500 {
		t.Errorf("%d grants have passed it", n)
	}
	for i := range c.Masters {
		c.Do(i, "DEL", "k")
	}
	all.Wait()
}
