package redlock

// pure_hold_test.go: renewal on masters inside this process.

import (
	"container/heap"
	"errors"
	"math/bits"
	"testing"
	"time"
)

// holdFor holds a new lock; the reason of its loss goes to the channel.
func (d *pureDaemon) holdFor(key Key, ttl, longest time.Duration) (*hold, Grant, chan error) {
	d.t.Helper()
	lost := make(chan error, 2) // 2: so that a second loss would be seen
	g := d.take(LockRequest{Key: key, TTL: ttl, Hold: &HoldTerms{MaxTime: longest, OnEnd: func(_ Grant, reason error) { lost <- reason }}})
	return g.Hold.(*hold), g, lost
}

// renewNow is what happens once a third of the ttl of every hold has passed.
func (d *pureDaemon) renewNow() {
	d.holds.mu.Lock()
	defer d.holds.mu.Unlock()
	now := d.engine.Clock.Now()
	for _, h := range d.holds.queue {
		h.due, h.ballot = now, nil
	}
	d.holds.timerAt = 0
	d.holds.setTimerLocked()
}

func TestHold_IsRenewedUntilItsOwnerEndsIt(t *testing.T) {
	t.Parallel()
	d := newPureDaemon(t, Options{})
	h, g, lost := d.holdFor("k", time.Minute, 0)
	for n := int64(1); n <= 3; n++ {
		d.renewNow()
		eventually(t, "it is renewed once more", func() bool { return d.Counters().Extended >= n })
	}
	if _, err := d.lock(LockRequest{Key: "k", TTL: time.Second}); !errors.Is(err, ErrHeld) {
		t.Errorf("a second lock: %v, want ErrHeld", err)
	}
	h.End()
	h.End() // a second time changes nothing
	d.quiet()
	if n := d.holders(0, "k", string(g.Token)); n != 0 {
		t.Errorf("%d copies left", n)
	}
	renewed := d.Counters().Extended
	d.take(LockRequest{Key: "k"})
	if reason := <-lost; d.Holds() != 0 || d.Counters().Extended != renewed || reason != nil || len(lost) > 0 {
		t.Errorf("%d holds, %d renewals after the end, over because %v, and %d times more", d.Holds(), d.Counters().Extended-renewed, reason, len(lost))
	}
}

func TestHold_AReleaseEndsTheRenewal(t *testing.T) {
	t.Parallel()
	d := newPureDaemon(t, Options{})
	_, g, lost := d.holdFor("k", 3*time.Second, 0)
	if released, err := d.unlock(UnlockRequest{Key: "k", Token: g.Token}); !released || err != nil {
		t.Fatalf("released %v, %v", released, err)
	}
	if d.Holds() != 0 {
		t.Errorf("%d holds after the release", d.Holds())
	}
	d.take(LockRequest{Key: "k"})
	if reason := <-lost; reason != nil || len(lost) > 0 {
		t.Errorf("over because %v, and %d times more", reason, len(lost))
	}
}

func TestHold_ALostLeaseIsReportedOnceAndNeverRevived(t *testing.T) {
	t.Parallel()
	d := newPureDaemon(t, Options{})
	_, g, lost := d.holdFor("k", time.Minute, 0)
	d.quiet() // all copies are made
	d.onMasters(func(lane int) {
		if lane < 3 {
			d.engine.Pool.Embedded().At(lane).Server().Del("k")
		}
	})
	d.renewNow()
	if reason := <-lost; !errors.Is(reason, ErrLostHeld) {
		t.Errorf("lost because %v", reason)
	}
	d.quiet()
	if n := d.holders(0, "k", string(g.Token)); n != 0 {
		t.Errorf("%d copies of a lost lease are left", n)
	}
	if d.Counters().HoldsLost != 1 || len(lost) > 0 {
		t.Errorf("%d losses counted, %d more told", d.Counters().HoldsLost, len(lost))
	}
	if _, err := d.extend(ExtendRequest{Key: "k", Token: g.Token, TTL: time.Second}); !errors.Is(err, ErrNotHeld) {
		t.Errorf("an extension of a lost lease: %v, want ErrNotHeld", err)
	}
}

// contend lets another client compete for "k" on the first two masters.
func (d *pureDaemon) contend() {
	d.onMasters(func(lane int) {
		if lane < 2 {
			if err := d.engine.Pool.Embedded().At(lane).Server().Set("k", "a contender's token"); err != nil {
				d.t.Error(err)
			}
		}
	})
}

func (d *pureDaemon) contendNoMore() {
	d.onMasters(func(lane int) {
		if lane < 2 {
			d.engine.Pool.Embedded().At(lane).Server().Del("k")
		}
	})
}

// Beside contenders a quorum may be all that has a copy: the others get theirs long
// before a third of the ttl, so that the loss of a master does not end the lease.
func TestHold_ReachesMastersThatRefusedItAtFirst(t *testing.T) {
	t.Parallel()
	d := newPureDaemon(t, Options{})
	d.contend()
	_, g, lost := d.holdFor("k", time.Hour, 0)
	d.quiet()
	d.contendNoMore()
	eventually(t, "every master has a copy", func() bool { return d.holders(0, "k", string(g.Token)) == 5 })
	eventually(t, "the renewal is decided", func() bool { return d.Counters().Extended > 0 })
	d.onMasters(func(lane int) {
		if lane > 2 {
			d.engine.Pool.Embedded().At(lane).Server().Del("k")
		}
	})
	if _, err := d.extend(ExtendRequest{Key: "k", Token: g.Token, TTL: time.Hour}); err != nil || len(lost) > 0 {
		t.Errorf("two of five copies are lost: %v, told of %d losses", err, len(lost))
	}
}

// A client competes on a master whenever that master is to take its copy: the renewal
// tries it again long before a third of the ttl, but less and less often.
func TestHold_RetriesOnAMasterThatRefusesItsCopy(t *testing.T) {
	t.Parallel()
	d := newPureDaemon(t, Options{})
	d.contend()
	began := time.Now()
	h, g, _ := d.holdFor("k", time.Hour, 0)
	eventually(t, "it has been renewed three times", func() bool { return d.Counters().Extended >= 3 })
	d.contendNoMore()
	eventually(t, "every master has a copy", func() bool { return d.holders(0, "k", string(g.Token)) == 5 })
	eventually(t, "it is renewed as usual", func() bool {
		d.holds.mu.Lock()
		defer d.holds.mu.Unlock()
		return h.due > d.engine.Clock.Now()+15*time.Minute
	})
	// Each waits twice as long as the one before, however long all this took.
	most := max(8, 4+bits.Len64(uint64(time.Since(began)/afterRefusal)))
	if n := d.Counters().Extended; n > int64(most) {
		t.Errorf("%d renewals, want at most %d: that they become rare", n, most)
	}
}

// A master that refuses for good is not tried all the time.
func TestHold_AMasterThatRefusesForGoodIsTriedLessAndLessOften(t *testing.T) {
	t.Parallel()
	d := newPureDaemon(t, Options{})
	h, _, _ := d.holdFor("k", time.Minute, 0)
	d.quiet()
	ids := []Lease{h.id()}
	for _, want := range []time.Duration{8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 20000, 20000} {
		d.holds.mu.Lock()
		h.due = d.engine.Clock.Now() + 20*time.Second // as after a renewal
		d.holds.mu.Unlock()
		d.holds.Copied(ids, false)
		d.holds.Copied(ids, false) // another master, the same renewal
		d.holds.mu.Lock()
		if h.refusalPause != want*time.Millisecond && want < 20000 {
			t.Errorf("waits for %v, want %v", h.refusalPause, want*time.Millisecond)
		}
		d.holds.mu.Unlock()
	}
	d.holds.Copied(ids, true)
	d.holds.mu.Lock()
	defer d.holds.mu.Unlock()
	if h.refusalPause != 0 {
		t.Errorf("waits for %v although the master has its copy", h.refusalPause)
	}
}

// What every master has at once is not renewed before a third of its ttl.
func TestHold_OnEveryMasterIsOnlyChecked(t *testing.T) {
	t.Parallel()
	for range 100 {
		d := newPureDaemon(t, Options{})
		h, _, _ := d.holdFor("k", time.Hour, 0)
		if !d.look(h, d.engine.Clock.Now()+time.Hour) { // on a busy machine it was looked at before all have answered
			continue
		}
		d.quiet()
		d.look(h, d.engine.Clock.Now())
		eventually(t, "its ballot has been looked at", func() bool {
			d.holds.mu.Lock()
			defer d.holds.mu.Unlock()
			return h.ballot == nil && h.due == h.grant.Began()+20*time.Minute
		})
		if n := d.Counters().Extended; n != 0 {
			t.Errorf("%d renewals", n)
		}
		return
	}
	t.Fatal("every hold was looked at before it could be put off")
}

// look has a hold's ballot be looked at then, unless that has happened.
func (d *pureDaemon) look(h *hold, at time.Duration) bool {
	d.holds.mu.Lock()
	defer d.holds.mu.Unlock()
	if h.ballot == nil || h.index < 0 {
		return false
	}
	h.due = at
	heap.Fix(&d.holds.queue, h.index)
	d.holds.timerAt = 0
	d.holds.setTimerLocked()
	return true
}

func TestHold_EndsForGoodAtItsMaximum(t *testing.T) {
	t.Parallel()
	d := newPureDaemon(t, Options{})
	_, _, lost := d.holdFor("k", 4500*time.Millisecond, 2*time.Second)
	if reason := <-lost; !errors.Is(reason, ErrLostMax) {
		t.Errorf("lost because %v, want %v", reason, ErrLostMax)
	}
	if n := d.Counters().Extended; n == 0 {
		t.Error("it was never renewed")
	}
	d.take(LockRequest{Key: "k"})
}

// A paused process wakes up after its lease has ended.
func TestHold_APausedDaemonRenewsNothingItHasLost(t *testing.T) {
	t.Parallel()
	d := newPureDaemon(t, Options{})
	h, g, lost := d.holdFor("k", time.Minute, 0)
	d.quiet()                       // all copies are made
	before := d.Counters().Extended // the check after the ballot may have come before a copy
	d.holds.mu.Lock()
	h.until = d.engine.Clock.Now() - time.Millisecond
	h.due = h.until
	d.holds.timerAt = 0
	d.holds.setTimerLocked()
	d.holds.mu.Unlock()
	if reason := <-lost; !errors.Is(reason, ErrLostExpired) {
		t.Errorf("lost because %v", reason)
	}
	d.quiet()
	if n := d.Counters().Extended - before; n != 0 {
		t.Errorf("%d renewals", n)
	}
	if n := d.holders(0, "k", string(g.Token)); n != 0 {
		t.Errorf("%d copies left", n)
	}
}

func TestHold_ManyAreRenewedTogether(t *testing.T) {
	d := newPureDaemon(t, Options{})
	const n = 60
	ends := make([]*hold, 0, n)
	for range n {
		h, _, _ := d.holdFor(Key(NewToken()), 5*time.Second, 0)
		ends = append(ends, h)
	}
	d.quiet()
	before := d.engine.Pool.Counters()
	d.renewNow()
	eventually(t, "all are renewed", func() bool { return d.Counters().Extended >= n })
	after := d.engine.Pool.Counters()
	if flushes := after.Flushes - before.Flushes; flushes > 5*n/2 {
		t.Errorf("%d flushes for %d renewals on 5 masters", flushes, n)
	}
	for _, h := range ends {
		h.End()
	}
	if d.Holds() != 0 || len(d.holds.queue) != 0 {
		t.Errorf("%d holds, %d in the queue", d.Holds(), len(d.holds.queue))
	}
}

// A client that is cut off by a daemon that stops may still be at work.
func TestHold_ADaemonThatDrainsReleasesNothing(t *testing.T) {
	t.Parallel()
	d := newPureDaemon(t, Options{})
	h, g, over := d.holdFor("k", time.Minute, 0)
	d.quiet()
	d.EndWaits()
	h.End()
	d.quiet()
	if n := d.holders(0, "k", string(g.Token)); n != 5 {
		t.Errorf("%d masters hold it, want all 5", n)
	}
	if reason := <-over; reason != nil || d.Holds() != 0 {
		t.Errorf("over because %v, %d holds", reason, d.Holds())
	}
}
