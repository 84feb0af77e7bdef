package redlock

// calls_test.go turns the Locker's calls into answers that a test can wait for.

import (
	"errors"
	"testing"
	"time"

	"redlockd/redlock/redlocktest"
)

// lockAnswer is what Lock and Extend answer.
type lockAnswer struct {
	grant Grant
	err   error
}

// unlockAnswer is what Unlock answers.
type unlockAnswer struct {
	was bool
	err error
}

func (d *daemon) request(r LockRequest) <-chan lockAnswer {
	answer := make(chan lockAnswer, 1) // 1: its one answer
	d.Lock(nil, r, func(g Grant, err error) { answer <- lockAnswer{g, err} })
	return answer
}

// lock asks for a key with a token of the daemon's choice.
func (d *daemon) lock(key Key, ttl time.Duration) (Grant, error) {
	d.t.Helper()
	return d.lockAs(key, "", ttl)
}

// lockAs asks with the caller's token.
func (d *daemon) lockAs(key Key, token Token, ttl time.Duration) (Grant, error) {
	d.t.Helper()
	a := receive(d.t, d.request(LockRequest{Key: key, TTL: ttl, Token: token}))
	return a.grant, a.err
}

// take is lock for a key that is free; all masters have answered when it
// returns, so that what the test does next to one of them comes after it.
func (d *daemon) take(key Key, ttl time.Duration) Grant {
	d.t.Helper()
	return d.takeAs(key, "", ttl)
}

func (d *daemon) takeAs(key Key, token Token, ttl time.Duration) Grant {
	d.t.Helper()
	g, err := d.lockAs(key, token, ttl)
	if err != nil {
		d.t.Fatalf("lock %q: %v, want a grant", key, err)
	}
	if v := g.Validity(); v <= 0 || v >= ttl {
		d.t.Fatalf("lock %q: validity %v of a ttl of %v", key, v, ttl)
	}
	d.idle()
	return g
}

// refuse wants a key not to be granted while another token holds it.
func (d *daemon) refuse(key Key, ttl time.Duration) error {
	d.t.Helper()
	g, err := d.lock(key, ttl)
	if err == nil {
		d.t.Fatalf("two tokens hold %q: granted with fence %d for %v", key, g.Fence, g.Validity())
	}
	return err
}

func (d *daemon) extend(key Key, token Token, ttl time.Duration) (Grant, error) {
	d.t.Helper()
	return redlocktest.Prolong(d.t, d.Leases, ExtendRequest{Key: key, Token: token, TTL: ttl})
}

func (d *daemon) unlock(key Key, token Token) (bool, error) {
	d.t.Helper()
	return redlocktest.Release(d.t, d.Leases, UnlockRequest{Key: key, Token: token})
}

// free is unlock for a lock that is held; as take, on all masters.
func (d *daemon) free(key Key, token Token) {
	d.t.Helper()
	if was, err := d.unlock(key, token); !was || err != nil {
		d.t.Fatalf("unlock %q: %v, %v, want true", key, was, err)
	}
	d.idle()
}

// isHeld wants the answer of a quorum that another token holds the key.
func isHeld(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, ErrHeld) {
		t.Fatalf("answered %v, want %v", err, ErrHeld)
	}
}
