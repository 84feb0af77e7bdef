package wait

// waits_test.go: waiting behind locks that end elsewhere: through another
// daemon, by hand, by expiry.

import (
	"errors"
	"testing"
	"time"

	"redlockd/pool"
	"redlockd/pool/faulty"
	"redlockd/redlock/engine"
	"redlockd/redlock/lease"
	"redlockd/redlock/redlocktest"
)

// waiting starts a wait and returns when its first ballot has been refused and the queue
// has queried the masters.
func (d *daemon) waiting(key string, r Request) <-chan waited {
	d.T.Helper()
	out := make(chan waited, 1) // its one answer
	r.Key, r.TTL = engine.Key(key), long
	if r.Wait == 0 {
		r.Wait = time.Minute
	}
	before := d.refused()
	d.Wait(nil, r, func(g lease.Grant, err error) { out <- waited{key, g, err} })
	redlocktest.Eventually(d.T, "the wait was refused once and watches", func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		ln := d.queues[queueID{db: r.DB, keys: string(r.Key), fair: r.Fair}]
		return d.refused() > before && ln != nil && ln.watch.tracked == d.engine.Pool.N()
	})
	return out
}

// granted wants the wait to succeed with at most one question more than needed:
// it was woken, it did not poll.
func (d *daemon) granted(out <-chan waited, asked int64) lease.Grant {
	d.T.Helper()
	w := <-out
	if w.err != nil {
		d.T.Fatalf("%s: %v", w.name, w.err)
	}
	if more := d.refused() - asked; more > 2 {
		d.T.Errorf("%s: %d questions were refused before the one that was granted: it polled", w.name, more)
	}
	return w.grant
}

func TestWait_IsWokenByAReleaseThroughAnotherDaemon(t *testing.T) {
	t.Parallel()
	c := redlocktest.NewCluster(t, 3, long)
	one, two := newDaemon(c), newDaemon(c)
	for range 20 {
		held := one.take("k", long)
		out := two.waiting("k", Request{LockRequest: lease.LockRequest{}})
		asked := two.refused()
		one.Free("k", held.Token)
		two.Free("k", two.granted(out, asked).Token)
	}
}

func TestWait_IsWokenByForeignReleases(t *testing.T) {
	t.Parallel()
	c := redlocktest.NewCluster(t, 3, long)
	one := newDaemon(c)
	const compareAndDelete = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"
	for how, release := range map[string]func(i int){
		"DEL":                func(i int) { c.Do(i, "DEL", "k") },
		"compare and delete": func(i int) { c.Do(i, "EVAL", compareAndDelete, 1, "k", "foreign") },
		"UNLINK":             func(i int) { c.Do(i, "UNLINK", "k") },
	} {
		for i := range c.Masters {
			c.Do(i, "SET", "k", "foreign", "PX", 60_000)
		}
		out := one.waiting("k", Request{LockRequest: lease.LockRequest{}})
		asked := one.refused()
		for i := range c.Masters {
			release(i)
		}
		g := one.granted(out, asked)
		one.Free("k", g.Token)
		t.Log(how)
	}
}

func TestWait_IsWokenWhenTheCopiesOfAQuorumHaveExpired(t *testing.T) {
	t.Parallel()
	c := redlocktest.NewCluster(t, 3, long)
	one := newDaemon(c)
	for i := range c.Masters {
		c.Do(i, "SET", "k", "foreign", "PX", 3000) // time enough to be refused, also on a busy machine
	}
	out := one.waiting("k", Request{LockRequest: lease.LockRequest{}})
	asked := one.refused()
	one.Free("k", one.granted(out, asked).Token)
}

// Watch connections are opened for waiting requests, and not before.
func TestWait_OpensWatchConnectionsOnlyWhileARequestWaits(t *testing.T) {
	t.Parallel()
	c := redlocktest.NewCluster(t, 3, long)
	one := newDaemon(c)
	tracking := func() (n int) {
		for i := range c.Masters {
			n += redlocktest.CountLines(c.Do(i, "CLIENT", "LIST").(string), "name=redlockd-news")
		}
		return n
	}
	held := one.take("k", long)
	if n := tracking(); n != 0 {
		t.Errorf("%d connections for news with nobody waiting", n)
	}
	out := one.waiting("k", Request{LockRequest: lease.LockRequest{}})
	if n := tracking(); n != 3 {
		t.Errorf("%d connections for news, want one a master", n)
	}
	one.Free("k", held.Token)
	<-out
}

// connectionOf is an owner of what its token holds.
type connectionOf engine.LeaseID

func (c connectionOf) Holds(func(engine.LeaseID) bool) []engine.LeaseID {
	return []engine.LeaseID{engine.LeaseID(c)}
}

func TestUpgrade_OfOneReaderWaitsForTheOthers(t *testing.T) {
	t.Parallel()
	c := redlocktest.NewCluster(t, 3, long)
	one, two := newDaemon(c), newDaemon(c)
	const tokenA, tokenB = engine.Token("token-of-a"), engine.Token("token-of-b")
	one.Get(lease.LockRequest{Key: "k", Mode: lease.Readers, Token: tokenA})
	two.Get(lease.LockRequest{Key: "k", Mode: lease.Readers, Token: tokenB})
	answer := make(chan error, 1)
	r := Request{LockRequest: lease.LockRequest{Key: "k", Token: tokenA, TTL: long}, Wait: redlocktest.Patience, Owner: connectionOf{Key: "k", Token: tokenA}}
	one.Wait(nil, r, func(_ lease.Grant, err error) { answer <- err })
	redlocktest.Eventually(t, "it waits and watches", func() bool {
		one.mu.Lock()
		defer one.mu.Unlock()
		ln := one.queues[queueID{keys: "k"}]
		return ln != nil && ln.watch.tracked == one.engine.Pool.N()
	})
	two.Free("k", tokenB)
	if err := redlocktest.Receive(t, answer); err != nil {
		t.Error(err)
	}
}

// Masters are silent at the end of a wait. What they grant later is given back.
func TestWait_EndsInTimeWhateverItsRequestDoes(t *testing.T) {
	t.Parallel()
	c := redlocktest.NewCluster(t, 3, long)
	// Held, the breaker does not answer for the masters.
	d := newDaemon(c, redlocktest.Relayed, func(d *redlocktest.Daemon, _ *pool.Options) { d.Clock.Hold(redlocktest.MasterTimeout) })
	for what, request := range map[string]Request{
		"plain": {}, "token": {LockRequest: lease.LockRequest{Token: "a-token-of-mine"}}, "reader": {LockRequest: lease.LockRequest{Mode: lease.Readers}}, "reader's token": {LockRequest: lease.LockRequest{Mode: lease.Readers, Token: "another-of-mine"}},
		"level": {LockRequest: lease.LockRequest{Mode: lease.LevelsOf("an-owner")}}, "several keys": {LockRequest: lease.LockRequest{More: []engine.Key{"more"}}}, "fair": {Fair: true}, "fair token": {LockRequest: lease.LockRequest{Token: "a-third-of-mine"}, Fair: true},
	} {
		for _, r := range d.Relays {
			r.Pause(faulty.ToClient)
		}
		request.Key, request.Wait = engine.Key(what), redlocktest.MasterTimeout+50*time.Millisecond
		out := make(chan waited, 2) // 2: so that a second answer would be seen
		d.waitFor(what, request, out)
		var unknown *engine.NoQuorum
		if w := redlocktest.Receive(t, out); !errors.As(w.err, &unknown) {
			t.Errorf("%s: %v, want NoQuorum", what, w.err)
		}
		if what != "fair" && d.engine.InFlight() == 0 { // it has no place yet, and requests nothing
			t.Errorf("%s: answered only when its request had ended", what)
		}
		for _, r := range d.Relays {
			r.Resume()
		}
		d.Quiet()
		for i := range c.Masters {
			redlocktest.Eventually(t, what+": what was granted after the answer is given back", func() bool { return c.Do(i, "EXISTS", what, "more") == int64(0) })
		}
		if len(out) > 0 {
			t.Errorf("%s: a second answer, %v", what, (<-out).err)
		}
	}
	d.left()
}
