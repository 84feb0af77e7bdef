package redlock

// keep_test.go: releases after which the lock lasts a little longer, UnlockRequest.Linger.

import (
	"errors"
	"slices"
	"testing"
	"time"

	"redlockd/redlock/events"
	"redlockd/redlock/redlocktest"
)

// The clock is the daemon's and the masters'. It stands still until it is moved.
func TestKeep_TheLockEndsAtItsTimeForWaitersHoldersAndListeners(t *testing.T) {
	t.Parallel()
	const ttl, keep = time.Minute, 10 * time.Second
	c := newStillClock()
	d := newPunctualDaemonWith(t, c)
	j := listen(t, d.Locker)
	over := make(chan error, 2) // 2: so that a second end would be seen
	g := d.take(LockRequest{Key: "k", TTL: ttl, Requester: &Requester{Meta: "nightly"}, Hold: &HoldTerms{OnEnd: func(_ Grant, reason error, _ time.Duration) { over <- reason }}})
	d.quiet()
	waits := make(chan Grant, 1)
	d.Wait(nil, LockRequest{Key: "k", TTL: ttl, Wait: time.Hour}, func(g Grant, err error) {
		if err != nil {
			t.Error(err)
		}
		waits <- g
	})
	if was, err := d.unlock(UnlockRequest{Key: "k", Token: g.Token, Linger: keep}); !was || err != nil {
		t.Fatalf("released %v, %v", was, err)
	}
	if reason := receive(t, over); reason != nil || d.Holds() != 0 {
		t.Errorf("the renewal ended because %v, %d are left", reason, d.Holds())
	}
	d.quiet()
	c.move(keep + beyondLease)
	if _, err := d.lock(LockRequest{Key: "k", TTL: ttl}); !errors.Is(err, ErrHeld) {
		t.Errorf("%v while the copies last, want that it is held", err)
	}
	d.quiet()
	if n := d.holders(0, "k", string(g.Token)); n != 5 {
		t.Errorf("%d copies, want 5", n)
	}
	j.has(t, "k", tale(events.Acquired, g.Fence))
	// In small steps: the end counts from the reading of a master's answer, and one may be under way
	// while the clock is moved.
	eventually(t, "the end and the next grant are told", func() bool {
		c.move(10 * time.Millisecond)
		return len(j.of("k")) == 3
	})
	next := receive(t, waits)
	if told := j.of("k"); !slices.Contains(told, tale(events.Expired, g.Fence)) || !slices.Contains(told, tale(events.Acquired, next.Fence)) {
		t.Errorf("told %q", told)
	}
	if len(over) > 0 {
		t.Error("the holder is told twice")
	}
}

func TestKeep_NeverLengthensAndTheTokenMayReleaseEarlier(t *testing.T) {
	t.Parallel()
	const ttl = 20 * time.Second
	c := newStillClock()
	d := newPunctualDaemonWith(t, c)
	g := d.take(LockRequest{Key: "k", TTL: ttl})
	d.quiet()
	if was, err := d.unlock(UnlockRequest{Key: "k", Token: g.Token, Linger: time.Minute}); !was || err != nil {
		t.Fatalf("released %v, %v", was, err)
	}
	d.quiet()
	c.move(ttl + beyondLease + 50*time.Millisecond)
	g = d.take(LockRequest{Key: "k", TTL: ttl})
	d.quiet()
	for _, keep := range []time.Duration{10 * time.Second, 0} {
		if was, err := d.unlock(UnlockRequest{Key: "k", Token: g.Token, Linger: keep}); !was || err != nil {
			t.Fatalf("released with %v: %v, %v", keep, was, err)
		}
	}
	d.take(LockRequest{Key: "k", TTL: ttl})
	if was, err := d.unlock(UnlockRequest{Key: "k", Token: g.Token, Linger: time.Second}); was || err != nil {
		t.Errorf("another's lock: %v, %v, want false", was, err)
	}
}

// A master that was cut off shortens its copy when it is back; the waiter of another daemon is
// woken when a quorum's copies have ended.
func TestKeep_ReachesRealMastersAndWakesWaitersOfOtherDaemons(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one, two := c.daemon(relayed), c.daemon()
	g := one.take("k", long)
	waits := make(chan error, 1)
	two.Wait(nil, LockRequest{Key: "k", TTL: long, Wait: patience}, func(_ Grant, err error) { waits <- err })
	before := c.ends(2, "k")
	one.relays[2].Refuse()
	one.relays[2].Cut()
	const keep = 6 * time.Second
	asked := time.Now()
	was, err := redlocktest.Release(t, one.Leases, UnlockRequest{Key: "k", Token: g.Token, Linger: keep})
	if !was || err != nil {
		t.Fatalf("released %v, %v", was, err)
	}
	for i := range 2 {
		if got := c.ends(i, "k"); got >= before || got < asked.UnixMilli() {
			t.Errorf("the copy on master %s ends at %d, want %d to %d", name(i), got, asked.UnixMilli(), before)
		}
	}
	one.relays[2].Accept()
	redlocktest.EventuallyIn(t, beforeItsTime(), "the copy that was cut off is shortened", func() bool {
		ends := c.ends(2, "k")
		if ends < 0 && time.Now().Before(asked.Add(keep)) {
			t.Fatal("the copy that was cut off is deleted before its time")
		}
		return ends < before
	})
	if err := receive(t, waits); err != nil {
		t.Errorf("the waiter: %v, want the lock", err)
	}
}
