package renew

// hold_test.go: renewal on masters inside this process.

import (
	"container/heap"
	"errors"
	"math/bits"
	"testing"
	"time"

	"redlockd/pool/embedded"
	"redlockd/redlock/engine"
	"redlockd/redlock/lease"
	"redlockd/redlock/redlocktest"
)

// renewNow is what happens once a third of the ttl of every hold has passed.
func (d *daemon) renewNow() {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.engine.Clock.Now()
	for _, h := range d.queue {
		if !h.renewing {
			h.due, h.ballot = now, nil
		}
	}
	d.timerAt = 0
	d.setTimerLocked()
}

func TestHold_IsRenewedUntilItsOwnerEndsIt(t *testing.T) {
	t.Parallel()
	d := newEmbedded(t)
	h, g, lost := d.holdFor("k", time.Minute, 0)
	for n := int64(1); n <= 3; n++ {
		d.renewNow()
		redlocktest.Eventually(t, "it is renewed once more", func() bool { return d.extended() >= n })
	}
	if _, err := d.Acquire(lease.LockRequest{Key: "k", TTL: redlocktest.Long}); !errors.Is(err, engine.ErrHeld) {
		t.Errorf("a second lock: %v, want ErrHeld", err)
	}
	h.End()
	h.End() // a second time changes nothing
	d.Quiet()
	if n := redlocktest.Holders(d.engine, 0, "k", string(g.Token)); n != 0 {
		t.Errorf("%d copies left", n)
	}
	renewed := d.extended()
	d.Take(lease.LockRequest{Key: "k"})
	if reason := <-lost; d.Count() != 0 || d.extended() != renewed || reason != nil || len(lost) > 0 {
		t.Errorf("%d holds, %d renewals after the end, over because %v, and %d times more", d.Count(), d.extended()-renewed, reason, len(lost))
	}
}

func TestHold_AReleaseEndsTheRenewal(t *testing.T) {
	t.Parallel()
	d := newEmbedded(t)
	_, g, lost := d.holdFor("k", 3*time.Second, 0)
	if released, err := d.Release("k", g.Token); !released || err != nil {
		t.Fatalf("released %v, %v", released, err)
	}
	if d.Count() != 0 {
		t.Errorf("%d holds after the release", d.Count())
	}
	d.Take(lease.LockRequest{Key: "k"})
	if reason := <-lost; reason != nil || len(lost) > 0 {
		t.Errorf("over because %v, and %d times more", reason, len(lost))
	}
}

func TestHold_ALostLeaseIsReportedOnceAndNeverRevived(t *testing.T) {
	t.Parallel()
	d := newEmbedded(t)
	_, g, lost := d.holdFor("k", time.Minute, 0)
	d.Quiet() // all copies are made
	d.OnMasters(func(lane int, m *embedded.Master) {
		if lane < 3 {
			m.Server().Del("k")
		}
	})
	d.renewNow()
	if reason := <-lost; !errors.Is(reason, ErrLostHeld) {
		t.Errorf("lost because %v", reason)
	}
	d.Quiet()
	// What a quorum lacks runs out where it is, beside the lock of the next holder.
	if n := redlocktest.Holders(d.engine, 0, "k", string(g.Token)); n != 2 {
		t.Errorf("%d copies of a lost lease are left, want 2 until they run out", n)
	}
	if d.engine.Counts.HoldsLost.Load() != 1 || len(lost) > 0 {
		t.Errorf("%d losses counted, %d more told", d.engine.Counts.HoldsLost.Load(), len(lost))
	}
	if _, err := d.Prolong(lease.ExtendRequest{Key: "k", Token: g.Token, TTL: redlocktest.Long}); !errors.Is(err, engine.ErrNotHeld) {
		t.Errorf("an extension of a lost lease: %v, want ErrNotHeld", err)
	}
	d.Take(lease.LockRequest{Key: "k"})
}

// contend lets another client compete for "k" on the first two masters.
func (d *daemon) contend() {
	d.OnMasters(func(lane int, m *embedded.Master) {
		if lane < 2 {
			if err := m.Server().Set("k", "a contender's token"); err != nil {
				d.T.Error(err)
			}
		}
	})
}

func (d *daemon) contendNoMore() {
	d.OnMasters(func(lane int, m *embedded.Master) {
		if lane < 2 {
			m.Server().Del("k")
		}
	})
}

// Beside contenders a quorum may be all that has a copy: the others get theirs long
// before a third of the ttl, so that the loss of a master does not end the lease.
func TestHold_ReachesMastersThatRefusedItAtFirst(t *testing.T) {
	t.Parallel()
	d := newEmbedded(t)
	d.contend()
	_, g, lost := d.holdFor("k", time.Hour, 0)
	d.Quiet()
	d.contendNoMore()
	redlocktest.Eventually(t, "every master has a copy", func() bool { return redlocktest.Holders(d.engine, 0, "k", string(g.Token)) == 5 })
	redlocktest.Eventually(t, "the renewal is decided", func() bool { return d.extended() > 0 })
	d.OnMasters(func(lane int, m *embedded.Master) {
		if lane > 2 {
			m.Server().Del("k")
		}
	})
	if _, err := d.Prolong(lease.ExtendRequest{Key: "k", Token: g.Token, TTL: time.Hour}); err != nil || len(lost) > 0 {
		t.Errorf("two of five copies are lost: %v, told of %d losses", err, len(lost))
	}
}

// A client competes on a master whenever that master is to take its copy: the renewal
// tries it again long before a third of the ttl, but less and less often.
func TestHold_RetriesOnAMasterThatRefusesItsCopy(t *testing.T) {
	t.Parallel()
	d := newEmbedded(t)
	d.contend()
	began := time.Now()
	h, g, _ := d.holdFor("k", time.Hour, 0)
	redlocktest.Eventually(t, "it has been renewed three times", func() bool { return d.extended() >= 3 })
	d.contendNoMore()
	redlocktest.Eventually(t, "every master has a copy", func() bool { return redlocktest.Holders(d.engine, 0, "k", string(g.Token)) == 5 })
	redlocktest.Eventually(t, "it is renewed as usual", func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return h.due > d.engine.Clock.Now()+15*time.Minute
	})
	// Each waits twice as long as the one before, however long all this took.
	most := max(8, 4+bits.Len64(uint64(time.Since(began)/afterRefusal)))
	if n := d.extended(); n > int64(most) {
		t.Errorf("%d renewals, want at most %d: that they become rare", n, most)
	}
}

// A master that refuses for good is not tried all the time.
func TestHold_AMasterThatRefusesForGoodIsTriedLessAndLessOften(t *testing.T) {
	t.Parallel()
	d := newEmbedded(t)
	h, _, _ := d.holdFor("k", time.Minute, 0)
	d.Quiet()
	ids := []engine.LeaseID{h.id()}
	for _, want := range []time.Duration{8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 20000, 20000} {
		d.mu.Lock()
		h.due = d.engine.Clock.Now() + 20*time.Second // as after a renewal
		d.mu.Unlock()
		d.Copied(ids, false)
		d.Copied(ids, false) // another master, the same renewal
		d.mu.Lock()
		if h.refusalPause != want*time.Millisecond && want < 20000 {
			t.Errorf("waits for %v, want %v", h.refusalPause, want*time.Millisecond)
		}
		d.mu.Unlock()
	}
	d.Copied(ids, true)
	d.mu.Lock()
	defer d.mu.Unlock()
	if h.refusalPause != 0 {
		t.Errorf("waits for %v although the master has its copy", h.refusalPause)
	}
}

// What every master has at once is not renewed before a third of its ttl.
func TestHold_OnEveryMasterIsOnlyChecked(t *testing.T) {
	t.Parallel()
	for range 100 {
		d := newEmbedded(t)
		h, _, _ := d.holdFor("k", time.Hour, 0)
		if !d.look(h, d.engine.Clock.Now()+time.Hour) { // on a busy machine it was looked at before all have answered
			continue
		}
		d.Quiet()
		d.look(h, d.engine.Clock.Now())
		redlocktest.Eventually(t, "its ballot has been looked at", func() bool {
			d.mu.Lock()
			defer d.mu.Unlock()
			return h.ballot == nil && h.due == h.grant.Began()+20*time.Minute
		})
		if n := d.extended(); n != 0 {
			t.Errorf("%d renewals", n)
		}
		return
	}
	t.Fatal("every hold was looked at before it could be put off")
}

// look has a hold's ballot be looked at then, unless that has happened.
func (d *daemon) look(h *hold, at time.Duration) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if h.ballot == nil || h.renewing {
		return false
	}
	h.due = at
	heap.Fix(&d.queue, h.index)
	d.timerAt = 0
	d.setTimerLocked()
	return true
}

func TestHold_EndsForGoodAtItsMaximum(t *testing.T) {
	t.Parallel()
	d := newEmbedded(t)
	_, g, lost := d.holdFor("k", 4500*time.Millisecond, 2*time.Second)
	if reason := <-lost; !errors.Is(reason, ErrLostMax) {
		t.Errorf("lost because %v, want %v", reason, ErrLostMax)
	}
	if n := d.extended(); n == 0 {
		t.Error("it was never renewed")
	}
	redlocktest.Eventually(t, "its copies have run out", func() bool { return redlocktest.Holders(d.engine, 0, "k", string(g.Token)) == 0 })
	d.Take(lease.LockRequest{Key: "k"})
}

// A paused process wakes up after its lease has ended.
func TestHold_APausedDaemonRenewsNothingItHasLost(t *testing.T) {
	t.Parallel()
	d := newEmbedded(t)
	h, g, lost := d.holdFor("k", time.Minute, 0)
	d.Quiet()              // all copies are made
	before := d.extended() // the check after the ballot may have come before a copy
	d.mu.Lock()
	h.until = d.engine.Clock.Now() - time.Millisecond
	h.due = h.until
	d.timerAt = 0
	d.setTimerLocked()
	d.mu.Unlock()
	if reason := <-lost; !errors.Is(reason, ErrLostExpired) {
		t.Errorf("lost because %v", reason)
	}
	d.Quiet()
	if n := d.extended() - before; n != 0 {
		t.Errorf("%d renewals", n)
	}
	// What is left of them is a later promise, for all that this daemon knows.
	if n := redlocktest.Holders(d.engine, 0, "k", string(g.Token)); n != 5 {
		t.Errorf("%d copies left, want 5", n)
	}
}

func TestHold_ManyAreRenewedTogether(t *testing.T) {
	d := newEmbedded(t)
	const n = 60
	ends := make([]*hold, 0, n)
	for range n {
		h, _, _ := d.holdFor(engine.Key(engine.NewToken()), 5*time.Second, 0)
		ends = append(ends, h)
	}
	d.Quiet()
	before := d.engine.Pool.Counters()
	d.renewNow()
	redlocktest.Eventually(t, "all are renewed", func() bool { return d.extended() >= n })
	after := d.engine.Pool.Counters()
	if flushes := after.Flushes - before.Flushes; flushes > 5*n/2 {
		t.Errorf("%d flushes for %d renewals on 5 masters", flushes, n)
	}
	for _, h := range ends {
		h.End()
	}
	if d.Count() != 0 || len(d.queue) != 0 {
		t.Errorf("%d holds, %d in the queue", d.Count(), len(d.queue))
	}
}

// A client that is cut off by a daemon that stops may still be at work.
func TestHold_ADaemonThatDrainsReleasesNothing(t *testing.T) {
	t.Parallel()
	d := newEmbedded(t)
	h, g, over := d.holdFor("k", time.Minute, 0)
	d.Quiet()
	d.Drain()
	h.End()
	d.Quiet()
	if n := redlocktest.Holders(d.engine, 0, "k", string(g.Token)); n != 5 {
		t.Errorf("%d masters hold it, want all 5", n)
	}
	if reason := <-over; reason != nil || d.Count() != 0 {
		t.Errorf("over because %v, %d holds", reason, d.Count())
	}
}
