package wait

// foreign_test.go: waiting for a key that holds another application's data.

import (
	"errors"
	"strings"
	"testing"
	"time"

	"redlockd/redlock/engine"
	"redlockd/redlock/lease"
	"redlockd/redlock/redlocktest"
)

// looks reports whether the queue for a key sends the script that looks at it.
func (d *daemon) looks(key string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	ln := d.queues[queueID{keys: key}]
	return ln != nil && ln.reads
}

func TestWait_ForDataThatIsNoLockEndsWithWrongType(t *testing.T) {
	t.Parallel()
	c := redlocktest.NewCluster(t, 3, long)
	one := newDaemon(c)
	for how, put := range map[string]func(i int){
		"a list": func(i int) { c.Do(i, "RPUSH", "k", "data") },
		"a hash": func(i int) { c.Do(i, "HSET", "k", "field", "data") },
		"a set that lasts longer than any lock": func(i int) {
			c.Do(i, "SADD", "k", "data")
			c.Do(i, "PEXPIRE", "k", (2 * long).Milliseconds())
		},
	} {
		for i := range c.Masters {
			c.Do(i, "DEL", "k")
			put(i)
		}
		out := make(chan waited, 3) // the answers
		for range 3 {
			one.waitFor(how, Request{LockRequest: lease.LockRequest{Key: "k"}, Wait: time.Hour}, out)
		}
		for range 3 {
			if w := redlocktest.Receive(t, out); !errors.Is(w.err, engine.ErrWrongType) {
				t.Errorf("%s: %v, want ErrWrongType", how, w.err)
			}
		}
		one.Idle()
		one.left()
		if n := c.Do(2, "EXISTS", "k"); n != int64(1) {
			t.Errorf("%s: the data is gone", how)
		}
	}
}

// The error names the keys of the queue, which a client never named, and comes at once.
func TestFair_NamesAQueueOfWhichAKeyIsOtherData(t *testing.T) {
	t.Parallel()
	c := redlocktest.NewCluster(t, 3, long)
	one := newDaemon(c)
	for _, foreign := range []string{"q", "qx", "qw"} {
		for i := range c.Masters {
			c.Do(i, "DEL", "redlockd:q:k", "redlockd:qx:k", "redlockd:qw:k")
			c.Do(i, "HSET", "redlockd:"+foreign+":k", "field", "data")
		}
		names := func(how string, err error) {
			if want := "one of redlockd:q:k, redlockd:qx:k, redlockd:qw:k holds something"; !errors.Is(err, engine.ErrWrongType) || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%s, %s: %v, want %q", foreign, how, err, want)
			}
		}
		out := make(chan waited, 1)
		one.waitFor("k", Request{LockRequest: lease.LockRequest{Key: "k"}, Wait: time.Hour, Fair: true}, out)
		names("a wait", redlocktest.Receive(t, out).err)
		if foreign == "q" { // the others are read behind it
			_, err := redlocktest.Acquire(t, one.Leases, lease.LockRequest{Key: "k", TTL: long, Mode: lease.Looking})
			names("a request at once", err)
		}
		one.Idle()
		one.left()
	}
}

// A lock without an expiry is a lock all the same, also one that was made by hand.
func TestWait_ForALockWithoutAnExpiryGoesOn(t *testing.T) {
	t.Parallel()
	c := redlocktest.NewCluster(t, 3, long)
	one := newDaemon(c)
	for i := range c.Masters {
		c.Do(i, "SET", "k", "by hand")
	}
	out := one.waiting("k", Request{LockRequest: lease.LockRequest{}})
	redlocktest.Eventually(t, "the key has been looked at", func() bool { return one.looks("k") && one.refused() >= 2 })
	one.Idle()
	for i := range c.Masters {
		c.Do(i, "DEL", "k")
	}
	w := redlocktest.Receive(t, out)
	if w.err != nil || w.grant.Chosen() {
		t.Fatalf("%v, %v, want the lock, with a token that is not the caller's", w.grant, w.err)
	}
	one.Free("k", w.grant.Token)
	one.left()
}

// As long as what is there may be a lock, nothing but SET NX is sent.
func TestWait_ForALeaseDoesNotLookAtTheKey(t *testing.T) {
	t.Parallel()
	c := redlocktest.NewCluster(t, 3, long)
	one, two := newDaemon(c), newDaemon(c)
	held := two.take("k", long)
	out := one.waiting("k", Request{LockRequest: lease.LockRequest{}})
	one.Idle()
	if one.looks("k") {
		t.Error("it looks at the key")
	}
	two.Free("k", held.Token)
	w := redlocktest.Receive(t, out)
	if w.err != nil {
		t.Fatal(w.err)
	}
	one.Free("k", w.grant.Token)
}
