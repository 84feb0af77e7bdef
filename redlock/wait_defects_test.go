package redlock

import (
	"errors"
	"testing"
	"time"

	"redlockd/pool/faulty"
)

// "no" is the answer of masters; before they have answered the outcome is unknown.
func TestWait_IsNotRefusedWhereTheOutcomeIsUnknown(t *testing.T) {
	t.Parallel()
	for _, fair := range []bool{false, true} {
		c := newCluster(t, 3, long)
		d := c.daemon(relayed)
		for _, r := range d.relays {
			r.Pause()
		}
		first, second := make(chan waited, 1), make(chan waited, 1)
		leave := d.Wait(nil, LockRequest{Key: "k", TTL: long, Fair: fair, Wait: time.Minute}, func(g Grant, err error) { first <- waited{"first", g, err} })
		d.Wait(nil, LockRequest{Key: "k", TTL: long, Fair: fair, Wait: 50 * time.Millisecond}, func(g Grant, err error) { second <- waited{"second", g, err} })
		w, n := <-second, (*NoQuorum)(nil)
		if !errors.As(w.err, &n) {
			t.Errorf("fair %v: no master could be asked about a free key, and its second waiter is told: %v", fair, w.err)
		}
		leave()
		<-first
	}
}

func TestWait_WithFairIsNotRefusedWhereTheMastersAreAway(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	d := c.daemon()
	for i := range c.servers {
		c.servers[i].Kill()
		d.await(i, "down")
	}
	for _, fair := range []bool{false, true} {
		out := make(chan waited, 1)
		d.Wait(nil, LockRequest{Key: "k", TTL: long, Fair: fair, Wait: 10 * time.Millisecond}, func(g Grant, err error) { out <- waited{"w", g, err} })
		if w, n := <-out, (*NoQuorum)(nil); !errors.As(w.err, &n) {
			t.Errorf("fair %v: all masters are down, and a wait is told: %v", fair, w.err)
		}
	}
}

// A grant that was given back belongs to no client, even if its undo did not reach a
// copy.
func TestUnlock_OfAGrantThatWasGivenBackIsNotSure(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one, two := c.daemon(relayed, blind), c.daemon() // a heartbeat under way would keep the lock from being sent
	one.relays[2].Pause(faulty.ToClient)
	g := one.takeAs("k", "a token of the client's", long)
	eventually(t, "all have it", func() bool { at := c.copies("k"); return at[0] != "" && at[1] != "" && at[2] != "" })
	one.relays[2].Cut()
	one.relays[2].Resume()
	one.await(2, "voting")
	one.GiveBack(g) // its client has gone
	eventually(t, "a quorum is free", func() bool { at := c.copies("k"); return at[0] == "" && at[1] == "" })
	two.take("k", long)
	one.relays[0].Pause()
	one.relays[1].Pause()
	if released, err := one.unlock("k", g.Token); released {
		t.Errorf("released, %v: somebody else has held the lock since", err)
	}
}
