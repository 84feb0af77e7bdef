package redlocktest

import (
	"testing"

	"redlockd/redlock/engine"
	"redlockd/redlock/lease"
)

// grantAnswer has an answer of Lock or Extend.
type grantAnswer struct {
	grant lease.Grant
	err   error
}

// unlockAnswer has an answer of Unlock.
type unlockAnswer struct {
	was bool
	err error
}

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

// Acquire requests a lock.
func Acquire(t *testing.T, l *lease.Leases, r lease.LockRequest) (lease.Grant, error) {
	t.Helper()
	a := once(t, func(done func(grantAnswer)) {
		l.Lock(nil, r, func(g lease.Grant, err error) { done(grantAnswer{g, err}) })
	})
	return a.grant, a.err
}

// Prolong extends a lock.
func Prolong(t *testing.T, l *lease.Leases, r lease.ExtendRequest) (lease.Grant, error) {
	t.Helper()
	a := once(t, func(done func(grantAnswer)) {
		l.Extend(nil, r, func(g lease.Grant, err error) { done(grantAnswer{g, err}) })
	})
	return a.grant, a.err
}

// Release releases a lock.
func Release(t *testing.T, l *lease.Leases, r lease.UnlockRequest) (bool, error) {
	t.Helper()
	a := once(t, func(done func(unlockAnswer)) {
		l.Unlock(nil, r, func(was bool, err error) { done(unlockAnswer{was, err}) })
	})
	return a.was, a.err
}

// Take is Acquire for what must be granted, for a minute unless the request has a ttl.
func Take(t *testing.T, l *lease.Leases, r lease.LockRequest) lease.Grant {
	t.Helper()
	if r.TTL == 0 {
		r.TTL = Patience
	}
	g, err := Acquire(t, l, r)
	if err != nil || g.Validity() <= 0 || g.Validity() >= r.TTL || g.Key != r.Key || g.Fence <= 0 {
		t.Fatalf("lock %+v: %+v, %v", r, g, err)
	}
	return g
}

// Acquire, Take, Prolong and Release call the functions of these names.
func (d *Daemon) Acquire(r lease.LockRequest) (lease.Grant, error) {
	d.T.Helper()
	return Acquire(d.T, d.Leases, r)
}

func (d *Daemon) Take(r lease.LockRequest) lease.Grant {
	d.T.Helper()
	return Take(d.T, d.Leases, r)
}

func (d *Daemon) Prolong(r lease.ExtendRequest) (lease.Grant, error) {
	d.T.Helper()
	return Prolong(d.T, d.Leases, r)
}

func (d *Daemon) Release(key engine.Key, token engine.Token) (bool, error) {
	d.T.Helper()
	return Release(d.T, d.Leases, lease.UnlockRequest{Key: key, Token: token})
}

// Get is Take, for Long unless the request has a ttl. All masters have answered when it returns,
// so that what the test does next to one of them comes after it.
func (d *Daemon) Get(r lease.LockRequest) lease.Grant {
	d.T.Helper()
	if r.TTL == 0 {
		r.TTL = Long
	}
	g := d.Take(r)
	d.Idle()
	return g
}

// Free is Release for a lock that is held; as Get, on all masters.
func (d *Daemon) Free(key engine.Key, token engine.Token) {
	d.T.Helper()
	if was, err := d.Release(key, token); !was || err != nil {
		d.T.Fatalf("unlock %q: %v, %v, want true", key, was, err)
	}
	d.Idle()
}
