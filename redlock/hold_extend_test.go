package redlock

// hold_extend_test.go: a holder that extends its lease itself was told for how long
// it may rely on it. A daemon that cannot renew meanwhile must not end it sooner.

import (
	"testing"
	"time"
)

func TestHold_LastsAsLongAsItsHolderWasToldByAnExtension(t *testing.T) {
	const ttl = 500 * time.Millisecond
	c := newCluster(t, 3, long)
	d := c.daemon(relayed)
	lost := make(chan error, 2) // 2: so that a second loss would be seen
	terms := &HoldTerms{Over: func(_ Grant, reason error) { lost <- reason }}
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
	time.Sleep(3 * ttl) // no renewal is decided beyond the validity of the last one
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
	held.Hold.End()
	eventually(t, "the lock is gone", func() bool { return c.empty(0, 1, 2) })
}
