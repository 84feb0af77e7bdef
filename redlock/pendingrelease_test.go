package redlock

// pendingrelease_test.go: releases that are pending on masters that a daemon has not
// reached since its start. It has no master's clock then, and must still set an expiry.

import (
	"testing"
	"time"

	"redlockd/pool"
)

// cutOff starts a daemon that reaches no master until it is let through.
func (c *cluster) cutOff() (d *daemon, letThrough func()) {
	c.t.Helper()
	d = c.startDaemon(relayed, func(d *daemon, _ *pool.Options) {
		for _, r := range d.relays {
			r.Refuse()
		}
	})
	for i := range c.servers {
		d.await(i, "down")
	}
	return d, func() {
		for _, r := range d.relays {
			r.Accept()
		}
		for i := range c.servers {
			d.await(i, "voting")
		}
		d.idle()
	}
}

func TestWork_ThatIsEndedThroughADaemonWithoutMastersIsNotForgotten(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one := c.daemon()
	r := WorkRequest{Key: "done", Timeout: long, Max: 5, Keep: long}
	done := one.find(r, WorkAcquired, 1)
	failed := one.find(WorkRequest{Key: "failed", Timeout: long, Max: 5, Keep: long}, WorkAcquired, 1)

	two, letThrough := c.cutOff()
	noQuorum(t, receive(t, two.requestEnd(two.WorkDone, done)).err, "0 of 3", "repeated")
	noQuorum(t, receive(t, two.requestEnd(two.WorkFail, failed)).err, "0 of 3", "repeated")
	letThrough()

	one.find(r, WorkDone, 1)
	for i := range c.servers {
		if left := c.do(i, "PTTL", "redlockd:work:done").(int64); left < (long / 2).Milliseconds() {
			t.Errorf("master %s remembers what is done for %d ms more, want almost %v", name(i), left, long)
		}
	}
	one.find(WorkRequest{Key: "failed", Timeout: long, Max: 5, Keep: long}, WorkAcquired, 2)
}

func TestUnlock_ThroughADaemonWithoutMastersIsMadeGood(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one := c.daemon()
	held := one.take("k", long)

	two, letThrough := c.cutOff()
	_, err := two.unlock("k", held.Token)
	noQuorum(t, err, "0 of 3", "repeated")
	letThrough()

	eventually(t, "the lock is gone everywhere", func() bool { return c.empty(0, 1, 2) })
	one.free("k", one.take("k", 10*time.Second).Token)
}
