package redlock

// followhold_test.go: what is held outlasts a change after which more masters are a quorum.

import (
	"slices"
	"testing"
	"time"
)

// A lock rests on two of three masters while the third one is away. Right after that is back the
// three become five: three must renew it, and new masters do not count yet.
func TestFollow_AHoldOnABareQuorumOutlastsALargerQuorum(t *testing.T) {
	t.Parallel()
	const ttl = 12 * time.Second
	c := newCluster(t, 5, ttl)
	c.bootstrapOf(0, 1, 2)
	d := c.startDaemon(listing(0, 1, 2), relayed)
	for i := range 3 {
		d.await(i, "voting")
	}
	d.relays[2].Refuse()
	d.relays[2].Cut()
	d.await(2, "down")
	lost := make(chan error, 1)
	held := d.get(LockRequest{Key: "held", TTL: ttl, Hold: &HoldTerms{OnEnd: func(_ Grant, reason error, _ time.Duration) { lost <- reason }}})
	d.relays[2].Accept()
	d.await(2, "voting")
	c.reconfigure(0, 1, 2, 3, 4)
	d.lists(0, 1, 2, 3, 4)
	end := c.ends(0, "held")
	eventually(t, "the lock is renewed on all five masters", func() bool {
		select {
		case reason := <-lost:
			t.Fatalf("the lock is lost: %v; the masters have %q", reason, c.copies("held"))
		default:
		}
		return c.ends(0, "held") > end && !slices.Contains(c.copies("held"), "")
	})
	d.free("held", held.Token)
}
