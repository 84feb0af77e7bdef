package redlock

// hold_extend_test.go: a holder that extends its lease itself has received for how long it may
// rely on it. A daemon that cannot renew meanwhile must not end it sooner.

import (
	"errors"
	"testing"
	"time"

	"redlockd/pool"
	"redlockd/pool/faulty"
)

func TestHold_LastsAsLongAsAnExtensionPromisedItsHolder(t *testing.T) {
	t.Parallel()
	const ttl = 3 * time.Second
	c := newCluster(t, 3, long)
	d := c.daemon(relayed)
	lost := make(chan error, 2) // 2: so that a second loss would be seen
	terms := &HoldTerms{OnEnd: func(_ Grant, reason error, _ time.Duration) { lost <- reason }}
	granted := make(chan Grant, 1)
	d.Lock(nil, LockRequest{Key: "k", TTL: ttl, Hold: terms}, func(g Grant, err error) {
		if err != nil {
			t.Error(err)
		}
		granted <- g
	})
	held := receive(t, granted)
	if _, err := d.extend("k", held.Token, long); err != nil {
		t.Fatal(err)
	}
	for _, r := range d.relays {
		r.Pause()
	}
	time.Sleep(2 * ttl) // no renewal is decided beyond the validity of the last one
	for _, r := range d.relays {
		r.Resume()
	}
	renewed := d.Counters().Extended
	eventually(t, "it is renewed again", func() bool { return d.Counters().Extended > renewed || len(lost) > 0 })
	if len(lost) > 0 {
		t.Fatalf("the hold is over because %v, and its holder was told that it lasts for %v", <-lost, long)
	}
	if d.Holds() != 1 {
		t.Errorf("%d holds, want 1", d.Holds())
	}
	d.holds.Of(&held).End()
	eventually(t, "the lock is gone", func() bool { return c.empty(0, 1, 2) })
}

// Another daemon has prolonged the lease meanwhile: what the first one no longer
// renews is not its to end before that.
func TestHold_ThatIsLostSparesWhatAnotherDaemonHasExtended(t *testing.T) {
	t.Parallel()
	const ttl = 3 * time.Second
	c := newCluster(t, 3, long)
	d, other := c.daemon(relayed), c.daemon()
	lost := make(chan error, 1)
	granted := make(chan Grant, 1)
	d.Lock(nil, LockRequest{Key: "k", TTL: ttl, Hold: &HoldTerms{OnEnd: func(_ Grant, reason error, _ time.Duration) { lost <- reason }}}, func(g Grant, err error) {
		if err != nil {
			t.Error(err)
		}
		granted <- g
	})
	held := receive(t, granted)
	for _, r := range d.relays {
		r.Pause()
	}
	extended, err := other.extend("k", held.Token, long)
	if err != nil {
		t.Fatal(err)
	}
	if reason := receive(t, lost); !errors.Is(reason, ErrLostExpired) {
		t.Errorf("lost because %v, want %v", reason, ErrLostExpired)
	}
	for _, r := range d.relays {
		r.Resume()
	}
	// Whatever the first daemon had to send to the masters comes before this.
	eventually(t, "the first daemon is answered again", func() bool {
		_, err := d.lock("next", ttl)
		return err == nil
	})
	if _, err := other.ask(LockRequest{Key: "k", TTL: ttl}); !errors.Is(err, ErrHeld) {
		t.Errorf("another holder %v before the end of the first one: %v", extended.Validity(), err)
	}
	if was, err := other.unlock("k", held.Token); !was || err != nil {
		t.Errorf("released: %v, %v", was, err)
	}
}

// The last renewal was executed and not answered, so the copies end where it wrote that, and
// nobody can see any more that an extension through another daemon promised less than that.
func TestHold_ThatIsNotRenewedInTimeDeletesNothing(t *testing.T) {
	t.Parallel()
	const ttl = 9 * time.Second
	c := newCluster(t, 3, long)
	// A reading of the lists of requests to let go, which is every second, would be what is not answered.
	unasked := func(d *daemon, _ *pool.Options) { d.clock.Hold(time.Second) }
	d, other := c.daemon(relayed, blind, unasked, timeout(30*time.Second)), c.daemon()
	lost := make(chan error, 1)
	held := d.get(LockRequest{Key: "k", TTL: ttl, Hold: &HoldTerms{OnEnd: func(_ Grant, reason error, _ time.Duration) { lost <- reason }}})
	d.settled(0, 1, 2)
	before := c.ends(0, "k")
	for _, r := range d.relays {
		r.Pause(faulty.ToClient)
	}
	eventually(t, "a renewal is executed", func() bool { return c.ends(0, "k") > before && c.ends(1, "k") > before && c.ends(2, "k") > before })
	extended, err := other.extend("k", held.Token, ttl-time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if reason := receive(t, lost); !errors.Is(reason, ErrLostExpired) {
		t.Errorf("lost because %v, want %v", reason, ErrLostExpired)
	}
	for _, r := range d.relays {
		r.Resume()
	}
	eventually(t, "the first daemon is answered again", func() bool {
		_, err := d.lock("next", ttl)
		return err == nil
	})
	// The copies last for 30 s longer than any lease, if they are left alone.
	if _, err := other.ask(LockRequest{Key: "k", TTL: ttl}); !errors.Is(err, ErrHeld) {
		t.Errorf("another holder %v before the end of the first one: %v", extended.Validity(), err)
	}
}

// The holder of several keys has all of them or none.
func TestHold_OfSeveralKeysIsRenewedAndGivenBackWhole(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	d := c.daemon()
	lost := make(chan error, 1)
	g := d.get(LockRequest{Key: "a", More: []Key{"b", "c"}, TTL: 3 * time.Second, Hold: &HoldTerms{OnEnd: func(_ Grant, reason error, _ time.Duration) { lost <- reason }}})
	d.idle()
	keys := []string{"a", "b", "c"}
	before := map[string]int64{}
	for _, key := range keys {
		before[key] = c.ends(0, key)
	}
	eventually(t, "every key is renewed", func() bool {
		for _, key := range keys {
			if c.ends(0, key) <= before[key] {
				return len(lost) > 0
			}
		}
		return true
	})
	if len(lost) > 0 {
		t.Fatalf("it is over: %v", <-lost)
	}
	d.holds.Of(&g).End()
	eventually(t, "no key is left", func() bool { return c.empty(0, 1, 2) })
}
