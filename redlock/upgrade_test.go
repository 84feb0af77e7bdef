package redlock

import (
	"errors"
	"testing"
)

// connectionOf is an owner of what its token holds.
type connectionOf Lease

func (c connectionOf) Holds(func(Lease) bool) []Lease { return []Lease{Lease(c)} }

// upgrade waits, with a reader's token, to be the writer.
func (d *daemon) upgrade(token Token) <-chan lockAnswer {
	answer := make(chan lockAnswer, 1)
	d.Wait(nil, LockRequest{
		Key: "k", Token: token, TTL: long, Wait: patience, Owner: connectionOf{Key: "k", Token: token},
	}, func(g Grant, err error) { answer <- lockAnswer{g, err} })
	return answer
}

func TestUpgrade_OfTwoReadersThroughOneDaemonIsADeadlockForTheSecond(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one, two := c.daemon(), c.daemon()
	one.get(LockRequest{Key: "k", Mode: Readers, Token: tokenA})
	one.get(LockRequest{Key: "k", Mode: Readers, Token: tokenB})
	first := one.upgrade(tokenA)
	eventually(t, "the first waits", func() bool { return one.Waiters() == 1 })
	second := receive(t, one.upgrade(tokenB))
	var deadlock *Deadlock
	if !errors.As(second.err, &deadlock) || len(deadlock.Keys) == 0 || deadlock.Keys[0] != "k" {
		t.Fatalf("the second reader who wants to be the writer: %v, want Deadlock naming the key", second.err)
	}
	two.free("k", tokenB) // it gives way
	if a := receive(t, first); a.err != nil {
		t.Errorf("the first: %v, want it to be the writer once the other has gone", a.err)
	}
	two.held(LockRequest{Key: "k", Mode: Readers})
}
