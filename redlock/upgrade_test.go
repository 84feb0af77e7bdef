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

// The seal is void meanwhile, so the upgrade fails everywhere and is undone everywhere.
func TestUpgrade_ThatFailsWhileMastersRefuseToWriteReadersKeepsTheReadLease(t *testing.T) {
	c := newCluster(t, 3, long)
	c.aclUser()
	d, other := c.daemon(restricted), c.daemon()
	d.get(LockRequest{Key: "k", Mode: Readers, Token: tokenA, TTL: long})
	d.settled(0, 1, 2)
	for i := range c.servers {
		c.do(i, "ACL", "SETUSER", "redlockd", "-zadd")
	}
	_, err := d.ask(LockRequest{Key: "k", Token: tokenA, TTL: long})
	noQuorum(t, err)
	eventually(t, "all masters have refused the undo, which is pending on them", func() bool {
		for i := range c.servers {
			if d.Masters(0)[i].PendingReleases == 0 && c.do(i, "EXISTS", "k") == int64(1) {
				return false
			}
		}
		return true
	})
	for i := range c.servers {
		c.do(i, "ACL", "SETUSER", "redlockd", "+zadd")
	}
	for i := range c.servers {
		d.await(i, "voting")
	}
	d.settled(0, 1, 2)
	for i := range c.servers {
		if kind := c.do(i, "TYPE", "k"); kind != "zset" || c.do(i, "ZSCORE", "k", string(tokenA)) == nil {
			t.Errorf("master %s: %v stands at the key, want the reader", name(i), kind)
		}
	}
	other.held(LockRequest{Key: "k", TTL: long})
	if _, err := d.extend("k", tokenA, long); err != nil {
		t.Errorf("the read lease is extended: %v", err)
	}
}
