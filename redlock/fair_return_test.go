package redlock

// fair_return_test.go: places in the queue of a master that was away. Here no wait queue's
// timer ever fires, so that nothing but the reconnect brings them back.

import (
	"slices"
	"strings"
	"testing"
	"time"

	"redlockd/pool"
)

// Times of package wait, which has no names for them outside. A test checks that such timers
// are held.
const (
	refreshInterval = time.Second
	ticketTimeout   = 3 * refreshInterval
)

// returning holds the timers of lines.
func returning(d *daemon, _ *pool.Options) { d.clock.Hold(refreshInterval) }

// The price: a command for each key, in the first flush that is no admission.
func TestFair_TheReturnOfAMasterCostsOneCommandAKeyInOneFlush(t *testing.T) {
	c := newCluster(t, 3, long)
	p := &tap{}
	d := c.daemon(returning, p.tapped)
	for _, key := range []string{"a", "b"} {
		d.take(Key(key), long)
		d.stands(key, LockRequest{})
		d.stands(key, LockRequest{})
	}
	d.stands("b", LockRequest{More: []Key{"a"}})
	d.idle()
	seen := len(p.to("c"))
	c.servers[2].RestartEmpty()
	eventually(t, "the places are there again", func() bool { return c.queued(2, "a") == 3 && c.queued(2, "b") == 3 })
	word := "EVALSHA " + d.engine.Scripts.Enlist // no other waiter enters now
	for _, flush := range p.to("c")[seen:] {
		if n := len(flush); n > 0 && strings.HasPrefix(flush[0], word) {
			keeps := slices.DeleteFunc(slices.Clone(flush), func(one string) bool { return !strings.HasPrefix(one, word) })
			if len(keeps) != 3 {
				t.Errorf("%d commands for two keys and both of them together: %q", len(keeps), keeps)
			}
			return
		}
	}
	t.Error("no flush begins with the places")
}

// A daemon that was paused while its masters went on counts as dead. Its own heartbeat shows
// this when the timers of its wait queues do not: they may count by another clock.
func TestFair_ADaemonThatWasPausedHasItsPlacesAgainBeforeTheNextRefresh(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	d := c.daemon(returning)
	d.take("k", long)
	d.stands("k", LockRequest{})
	for i := range c.servers {
		c.do(i, "DEL", "redlockd:q:k", "redlockd:qx:k", "redlockd:qw:k")
	}
	if d.clock.KeptTimers() == 0 {
		t.Fatal("no timer of a wait queue is held")
	}
	d.clock.Ahead.Add(int64(ticketTimeout))
	eventually(t, "it stands in the queues again", func() bool {
		return c.queued(0, "k") == 1 && c.queued(1, "k") == 1 && c.queued(2, "k") == 1
	})
}
