package redlocktest

import (
	"testing"
	"time"

	"redlockd/redlock/engine"
	"redlockd/redlock/lease"
)

// once makes a call and waits for its one answer.
func once[A any](t *testing.T, call func(done func(A))) A {
	t.Helper()
	answers := make(chan A, 2) // 2: so that a second answer would be seen
	call(func(a A) { answers <- a })
	a := Receive(t, answers)
	select {
	case second := <-answers:
		t.Errorf("answered twice: %+v and %+v", a, second)
	default:
	}
	return a
}

type lockAnswer struct {
	grant lease.Grant
	err   error
}

type unlockAnswer struct {
	was bool
	err error
}

// Acquire requests a lock.
func (d *Daemon) Acquire(r lease.LockRequest) (lease.Grant, error) {
	d.T.Helper()
	a := once(d.T, func(done func(lockAnswer)) {
		d.Lock(nil, r, func(g lease.Grant, err error) { done(lockAnswer{g, err}) })
	})
	return a.grant, a.err
}

// Take is Acquire for what must be granted.
func (d *Daemon) Take(r lease.LockRequest) lease.Grant {
	d.T.Helper()
	if r.TTL == 0 {
		r.TTL = Long
	}
	g, err := d.Acquire(r)
	if err != nil || g.Validity() <= 0 || g.Validity() >= r.TTL || g.Fence <= 0 {
		d.T.Fatalf("lock %+v: %+v, %v", r, g, err)
	}
	return g
}

// Get is Take. All masters have answered when it returns, so that what the test does next to one
// of them comes after it.
func (d *Daemon) Get(r lease.LockRequest) lease.Grant {
	d.T.Helper()
	g := d.Take(r)
	d.Idle()
	return g
}

// Prolong extends a lock.
func (d *Daemon) Prolong(r lease.ExtendRequest) (lease.Grant, error) {
	d.T.Helper()
	a := once(d.T, func(done func(lockAnswer)) {
		d.Extend(nil, r, func(g lease.Grant, err error) { done(lockAnswer{g, err}) })
	})
	return a.grant, a.err
}

// Release releases a lock.
func (d *Daemon) Release(key engine.Key, token engine.Token) (bool, error) {
	d.T.Helper()
	a := once(d.T, func(done func(unlockAnswer)) {
		d.Unlock(nil, lease.UnlockRequest{Key: key, Token: token}, func(was bool, err error) { done(unlockAnswer{was, err}) })
	})
	return a.was, a.err
}

// Free is Release for a lock that is held; as Get, on all masters.
func (d *Daemon) Free(key engine.Key, token engine.Token) {
	d.T.Helper()
	if was, err := d.Release(key, token); !was || err != nil {
		d.T.Fatalf("unlock %q: %v, %v, want true", key, was, err)
	}
	d.Idle()
}

// NoChanges are the changes of leases that no hold receives.
type NoChanges struct{}

var _ lease.Changes = NoChanges{}

func (NoChanges) Granted(lease.Grant, lease.Copies, *lease.HoldTerms) lease.Hold { return nil }
func (NoChanges) Released(engine.LeaseID)                                        {}
func (NoChanges) Forced(engine.LeaseID)                                          {}
func (NoChanges) Extended([]engine.LeaseID, time.Duration)                       {}
func (NoChanges) Shortened(engine.LeaseID, time.Duration)                        {}
func (NoChanges) Copied([]engine.LeaseID, bool)                                  {}
