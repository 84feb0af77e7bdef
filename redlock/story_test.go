package redlock

// story_test.go: the course of a lock, the same on embedded and on real masters.

import (
	"testing"
	"time"

	"redlockd/pool"
)

func TestStory_OfOneLock(t *testing.T) {
	t.Parallel()
	t.Run("real masters", func(t *testing.T) { story(t, newCluster(t, 5, time.Minute).daemon()) })
	t.Run("embedded masters", func(t *testing.T) { story(t, embedded(t)) })
}

// embedded is a daemon with five masters of its own, in this process.
func embedded(t *testing.T) *daemon { return embeddedOf(t, 5) }

func embeddedOf(t *testing.T, n int) *daemon {
	c := &cluster{t: t, maxTTL: time.Minute}
	return c.startDaemon(func(_ *daemon, o *pool.Options) {
		o.Masters, o.Embedded = nil, n
		o.MasterTimeout, o.Late = time.Minute, o.MasterTimeout // a busy machine may run them late
	})
}

func story(t *testing.T, d *daemon) {
	held := d.take("invoices", 30*time.Second)
	if len(held.Token) != 27 || !held.Fresh {
		t.Errorf("token %q, fresh %v; want 27 characters and a new lease", held.Token, held.Fresh)
	}
	isHeld(t, d.refuse("invoices", 30*time.Second))
	if was, err := d.unlock("invoices", "a-wrong-token"); was || err != nil {
		t.Errorf("a wrong token released it: %v, %v", was, err)
	}
	g, err := d.extend("invoices", held.Token, 40*time.Second)
	if err != nil || g.Validity() < 30*time.Second || g.Validity() >= 40*time.Second {
		t.Errorf("extended for %v, %v; want a little less than 40s", g.Validity(), err)
	}
	d.free("invoices", held.Token)
	if was, err := d.unlock("invoices", held.Token); was || err != nil {
		t.Errorf("released twice: %v, %v", was, err)
	}
	next := d.take("invoices", 30*time.Second)
	if next.Fence <= held.Fence {
		t.Errorf("fence %d after %d", next.Fence, held.Fence)
	}
	d.free("invoices", next.Token)
}

// Databases are apart from each other, as in Redis.
func TestStory_EachDatabaseHasItsOwnLocks(t *testing.T) {
	t.Parallel()
	d := newCluster(t, 3, time.Minute).daemon()
	for db := range 3 {
		a := receive(t, d.request(LockRequest{DB: db, Key: "k", TTL: time.Minute}))
		if a.err != nil {
			t.Errorf("database %d: %v", db, a.err)
		}
	}
}

func TestStory_AClosedDaemonRefuses(t *testing.T) {
	t.Parallel()
	d := newCluster(t, 3, time.Minute).daemon()
	if err := d.Close(patience); err != nil {
		t.Fatal(err)
	}
	if _, err := d.lock("k", time.Second); err != ErrShutdown {
		t.Errorf("lock: %v, want %v", err, ErrShutdown)
	}
	if _, err := d.unlock("k", own); err != ErrShutdown {
		t.Errorf("unlock: %v, want %v", err, ErrShutdown)
	}
	if _, err := d.extend("k", own, time.Second); err != ErrShutdown {
		t.Errorf("extend: %v, want %v", err, ErrShutdown)
	}
}

// A burst of callers shares flushes, and each of them is answered.
func TestStory_OfManyLocksAtOnce(t *testing.T) {
	d := newCluster(t, 5, time.Minute).daemon()
	burst(t, d, 5000, func() {})
	if c := d.Counters(); c.Acquired != 5000 || c.Released != 5000 || c.Refused+c.NoQuorum+c.Expired != 0 {
		t.Errorf("counters %+v, want 5000 acquired and released and nothing else", c)
	}
}
