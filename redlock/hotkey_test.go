package redlock

import (
	"sync/atomic"
	"testing"
	"time"
)

// A thousand tries at once for a key that is held: a few are sent to the masters, all are
// refused.
func TestHotKey_FewTriesOfManyAreInFlight(t *testing.T) {
	const tries = 1000
	c := newCluster(t, 3, long)
	p := new(tap)
	one, two := c.daemon(p.tapped), c.daemon()
	held := two.take("k", long)
	answers := make(chan error, tries)
	var b Batch
	for range tries {
		one.Lock(&b, LockRequest{Key: "k", TTL: long}, func(_ Grant, err error) { answers <- err })
	}
	if n := one.hot.waiting.Load(); n != tries-maxTries {
		t.Errorf("%d tries wait in the daemon, want %d", n, tries-maxTries)
	}
	b.Send()
	for range tries {
		isHeld(t, receive(t, answers))
	}
	for i := range c.servers {
		asked := 0
		for _, flush := range p.to(name(i)) {
			asked += count(flush, "SET k ")
		}
		if asked > maxTries+1 {
			t.Errorf("master %s executed %d tries, want at most %d and one for all others", name(i), asked, maxTries)
		}
	}
	if n := one.hot.waiting.Load(); n != 0 {
		t.Errorf("%d tries still wait", n)
	}
	two.free("k", held.Token)
	if _, err := one.lock("k", long); err != nil {
		t.Errorf("once it is free: %v", err)
	}
}

// Keys with the same counter wait for one another's tries, and none is forgotten.
func TestHotKey_EveryTryIsAnsweredOnceWhateverSharesItsCounter(t *testing.T) {
	const callers, rounds = 200, 20
	c := newCluster(t, 3, long)
	one := c.daemon()
	keys := []Key{"k"}
	like := one.hot.counter(&acquireCall{request: LockRequest{Key: "k"}})
	for i := 0; len(keys) < 4; i++ {
		if one.hot.counter(&acquireCall{request: LockRequest{Key: key(i)}}) == like {
			keys = append(keys, key(i))
		}
	}
	var granted, answered atomic.Int64
	done := make(chan struct{}, callers)
	for i := range callers {
		go func() {
			defer func() { done <- struct{}{} }()
			for r := range rounds {
				key := keys[(i+r)%len(keys)]
				g, err := one.lock(key, long)
				answered.Add(1)
				if err == nil {
					granted.Add(1)
					if was, err := one.unlock(key, g.Token); !was || err != nil {
						t.Errorf("unlock %q: %v, %v", key, was, err)
					}
				}
			}
		}()
	}
	for range callers {
		receive(t, done)
	}
	if n := answered.Load(); n != callers*rounds || granted.Load() == 0 {
		t.Errorf("%d answers and %d grants for %d tries", n, granted.Load(), callers*rounds)
	}
	if n := one.hot.waiting.Load(); n != 0 || len(one.hot.lists) != 0 {
		t.Errorf("%d tries wait in %d lists when all are answered", n, len(one.hot.lists))
	}
	for i := range one.hot.tries {
		if n := one.hot.tries[i].Load(); n != 0 {
			t.Errorf("counter %d is %d when nothing is in flight", i, n)
		}
	}
}

// Without masters the outcome is unknown for all that waited.
func TestHotKey_WithoutAQuorumEveryTryIsUndecided(t *testing.T) {
	const tries = 200
	c := newCluster(t, 3, long)
	one := c.daemon()
	for i, s := range c.servers[:2] {
		s.Kill()
		one.await(i, "down")
	}
	answers := make(chan error, tries)
	for range tries {
		one.Lock(nil, LockRequest{Key: "k", TTL: time.Second}, func(_ Grant, err error) { answers <- err })
	}
	for range tries {
		noQuorum(t, receive(t, answers))
	}
}
