package wait

// queues_test.go: the inside of wait queues, on masters inside this process.

import (
	"errors"
	"testing"
	"time"

	"redlockd/redlock/engine"
	"redlockd/redlock/lease"
	"redlockd/redlock/redlocktest"
)

// A queue goes with its last waiter, however the wait ended.
func TestQueues_AreLeftByNoWait(t *testing.T) {
	t.Parallel()
	d := newEmbedded(t)
	held := d.Take(lease.LockRequest{Key: "k"})
	out := make(chan waited, 3) // every answer
	wait := func(name string, limit time.Duration) (leave func()) {
		r := lease.LockRequest{Key: "k", TTL: long, Wait: limit}
		return d.Wait(nil, r, func(g lease.Grant, err error) { out <- waited{name, g, err} })
	}
	wait("granted", time.Minute)
	leave := wait("leaves", time.Minute)
	wait("ends", 2*time.Second)
	leave()
	for _, want := range []struct {
		name string
		err  error
	}{{"leaves", ErrLeft}, {"ends", engine.ErrHeld}} {
		if w := redlocktest.Receive(t, out); w.name != want.name || !errors.Is(w.err, want.err) {
			t.Errorf("%s: %v, want %s: %v", w.name, w.err, want.name, want.err)
		}
	}
	d.Unlock(nil, lease.UnlockRequest{Key: "k", Token: held.Token}, func(bool, error) {})
	if w := redlocktest.Receive(t, out); w.name != "granted" || w.err != nil {
		t.Errorf("%s: %v", w.name, w.err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.Waiters() != 0 || len(d.queues) != 0 || len(d.byKey) != 0 {
		t.Errorf("%d waiters, %d queues of %d keys are left", d.Waiters(), len(d.queues), len(d.byKey))
	}
}

// After a long streak of hand-overs others may pass. Then the head contends for the key,
// whatever reports the queue was waiting for.
func TestWait_TheHeadContendsForTheKeyAfterALongStreak(t *testing.T) {
	t.Parallel()
	d := newEmbedded(t)
	d.Take(lease.LockRequest{Key: "k", TTL: time.Minute})
	d.Quiet()
	out := make(chan waited, 1)
	r := lease.LockRequest{Key: "k", TTL: time.Minute, Wait: time.Minute}
	leave := d.Wait(nil, r, func(g lease.Grant, err error) { out <- waited{"w", g, err} })
	defer leave()
	var ln *waitQueue
	redlocktest.Eventually(t, "it stands in line", func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		for _, one := range d.queues {
			ln = one
		}
		return ln != nil && ln.length == 1 && ln.contender == nil
	})
	d.mu.Lock()
	defer d.mu.Unlock()
	ln.watch.due, ln.streak = true, maxStreak
	if next := ln.handOverLocked(); next != nil || ln.watch.due {
		t.Errorf("next %v, asks for news %v", next, ln.watch.due)
	}
}

// A later question of the same wait may be refused: the wait does not end with no.
func TestWait_RemembersThatADowngradeHasBegun(t *testing.T) {
	t.Parallel()
	d := newEmbedded(t)
	w := &waiter{waits: d.Queues, request: lease.LockRequest{Key: "k", Mode: lease.Shared}, end: forever}
	w.queue = &waitQueue{waits: d.Queues}
	begun := &engine.NoQuorum{Downgrading: true}
	for _, c := range []struct{ said, want error }{
		{engine.ErrHeld, engine.ErrHeld}, {&engine.NoQuorum{}, nil}, {engine.ErrHeld, engine.ErrHeld}, {begun, begun}, {engine.ErrHeld, begun},
	} {
		w.queue.decided(w, lease.Grant{}, c.said)
		if err := w.finalError(); c.want != nil && err != c.want {
			t.Errorf("after %v the wait would end with %v, want %v", c.said, err, c.want)
		}
	}
}
