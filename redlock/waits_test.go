package redlock

// waits_test.go: waiting behind locks that end elsewhere: through another
// daemon, by hand, by expiry.

import (
	"strings"
	"testing"
	"time"
)

// waiting starts a wait and returns when its first ballot has been refused and the queue
// has queried the masters.
func (d *daemon) waiting(key string, r LockRequest) <-chan waited {
	d.t.Helper()
	out := make(chan waited, 1) // its one answer
	r.Key, r.TTL = Key(key), long
	if r.Wait == 0 {
		r.Wait = time.Minute
	}
	before := d.Counters().Refused
	d.Wait(nil, r, func(g Grant, err error) { out <- waited{key, g, err} })
	eventually(d.t, "the wait was refused once and watches", func() bool {
		d.waiters.mu.Lock()
		defer d.waiters.mu.Unlock()
		ln := d.waiters.queues[queueID{db: r.DB, keys: string(r.Key), fair: r.Fair}]
		return d.Counters().Refused > before && ln != nil && ln.watch.tracked == d.engine.Pool.N()
	})
	return out
}

// granted wants the wait to succeed with at most one question more than needed:
// it was woken, it did not poll.
func (d *daemon) granted(out <-chan waited, asked int64) Grant {
	d.t.Helper()
	w := <-out
	if w.err != nil {
		d.t.Fatalf("%s: %v", w.name, w.err)
	}
	if more := d.Counters().Refused - asked; more > 2 {
		d.t.Errorf("%s: %d questions were refused before the one that was granted: it polled", w.name, more)
	}
	return w.grant
}

func TestWait_IsWokenByAReleaseThroughAnotherDaemon(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one, two := c.daemon(), c.daemon()
	for range 20 {
		held := one.take("k", long)
		out := two.waiting("k", LockRequest{})
		asked := two.Counters().Refused
		one.free("k", held.Token)
		two.free("k", two.granted(out, asked).Token)
	}
}

func TestWait_IsWokenByForeignReleases(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one := c.daemon()
	const compareAndDelete = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"
	for how, release := range map[string]func(i int){
		"DEL":                func(i int) { c.do(i, "DEL", "k") },
		"compare and delete": func(i int) { c.do(i, "EVAL", compareAndDelete, 1, "k", "foreign") },
		"UNLINK":             func(i int) { c.do(i, "UNLINK", "k") },
	} {
		for i := range c.servers {
			c.do(i, "SET", "k", "foreign", "PX", 60_000)
		}
		out := one.waiting("k", LockRequest{})
		asked := one.Counters().Refused
		for i := range c.servers {
			release(i)
		}
		g := one.granted(out, asked)
		one.free("k", g.Token)
		t.Log(how)
	}
}

func TestWait_IsWokenWhenTheCopiesOfAQuorumHaveExpired(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one := c.daemon()
	for i := range c.servers {
		c.do(i, "SET", "k", "foreign", "PX", 700)
	}
	out := one.waiting("k", LockRequest{})
	asked := one.Counters().Refused
	one.free("k", one.granted(out, asked).Token)
}

// Watch connections are opened for waiting requests, and not before.
func TestWait_OpensWatchConnectionsOnlyWhileARequestWaits(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one := c.daemon()
	tracking := func() (n int) {
		for i := range c.servers {
			n += countLines(c.do(i, "CLIENT", "LIST").(string), "name=redlockd-news")
		}
		return n
	}
	held := one.take("k", long)
	if n := tracking(); n != 0 {
		t.Errorf("%d connections for news with nobody waiting", n)
	}
	out := one.waiting("k", LockRequest{})
	if n := tracking(); n != 3 {
		t.Errorf("%d connections for news, want one a master", n)
	}
	one.free("k", held.Token)
	<-out
}

func countLines(text, with string) (n int) {
	for line := range strings.SplitSeq(text, "\n") {
		if strings.Contains(line, with) {
			n++
		}
	}
	return n
}
