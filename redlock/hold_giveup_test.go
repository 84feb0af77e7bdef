package redlock

import (
	"errors"
	"testing"
	"time"

	"redlockd/pool/faulty"
)

// The last renewal was executed and not answered, so the copies end where it wrote that, and
// nobody can see any more that an extension through another daemon promised less than that.
func TestHold_ThatIsNotRenewedInTimeDeletesNothing(t *testing.T) {
	t.Parallel()
	const ttl = 9 * time.Second
	c := newCluster(t, 3, long)
	d, other := c.daemon(relayed, blind, timeout(30*time.Second)), c.daemon()
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
	switch _, err := other.ask(LockRequest{Key: "k", TTL: ttl}); {
	case errors.Is(err, ErrHeld):
	case extended.Validity() <= 0:
		t.Skip("this machine was too slow: the extension is over")
	default:
		t.Errorf("another holder %v before the end of the first one: %v", extended.Validity(), err)
	}
}
