package redlock

import (
	"testing"
	"time"
)

// A thousand tries at once for a key that is held: a few are sent to the masters, all are
// refused.
func TestHotKey_FewTriesOfManyAreInFlight(t *testing.T) {
	const tries, maxTries = 1000, 16
	c := newCluster(t, 3, long)
	p := new(tap)
	one, two := c.daemon(p.tapped), c.daemon()
	held := two.take("k", long)
	answers := make(chan error, tries)
	var b Batch
	for range tries {
		one.Lock(&b, LockRequest{Key: "k", TTL: long}, func(_ Grant, err error) { answers <- err })
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
	two.free("k", held.Token)
	if _, err := one.lock("k", long); err != nil {
		t.Errorf("once it is free: %v", err)
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
