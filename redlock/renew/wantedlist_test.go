package renew

// wantedlist_test.go: requests to let go that clients of another daemon make, on real masters.

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"redlockd/redlock/engine"
	"redlockd/redlock/lease"
	"redlockd/redlock/redlocktest"
)

// revoker is a daemon that waits for as long as answers take on a busy machine, if it has to have any.
func revoker(c *redlocktest.Cluster) *daemon {
	d := newDaemon(c)
	d.lists.patience = redlocktest.Patience
	if redlocktest.RuleBroken {
		d.lists.patience = 10 * listInterval
	}
	return d
}

// notified is what DREVOKE answers.
func (d *daemon) notified(key engine.Key, text string) (int, error) {
	type answer struct {
		n   int
		err error
	}
	answered := make(chan answer, 1)
	d.Revoke(0, key, text, func(n int, err error) { answered <- answer{n, err} })
	a := redlocktest.Receive(d.T, answered)
	return a.n, a.err
}

func (d *daemon) wantsNotified(want int, key engine.Key, text string) {
	d.T.Helper()
	if n, err := d.notified(key, text); n != want || err != nil {
		d.T.Errorf("of the holders of %s %d are notified (%v), want %d", key, n, err, want)
	}
}

// asks holds a key as a client that is to be asked.
func (td *told) asks(d *daemon, r lease.LockRequest, name string) lease.Grant {
	d.T.Helper()
	r.TTL = redlocktest.Long
	g := d.Take(r)
	d.Begin(g, Terms{
		OnEnd:    func(lease.Grant, error, time.Duration) {},
		OnWanted: func(key engine.Key, text string) { td.add(fmt.Sprintf("%s %s %s", name, key, text)) },
	})
	return g
}

// No daemon has a listener: its holders are asked all the same, each once, and counted.
func TestRevoke_ReachesTheHoldersOfAnotherDaemon(t *testing.T) {
	t.Parallel()
	c := redlocktest.NewCluster(t, 3, redlocktest.Long)
	one, two, l := newDaemon(c), revoker(c), &told{}
	two.wantsNotified(0, "free", "x")
	l.asks(one, lease.LockRequest{Key: "k k", More: []engine.Key{"of two"}}, "holder")
	two.wantsNotified(1, "k k", "first text")
	l.has(t, "holder k k first text")
	if got := one.text("k k"); got != "first text" {
		t.Errorf("shown is %q", got)
	}
	for _, d := range []*daemon{one, two} {
		l.asks(d, lease.LockRequest{Key: "r", Mode: lease.Readers}, "reader")
	}
	two.wantsNotified(2, "r", "x")
	l.has(t, "reader r x", "reader r x")
	c.Masters[1].Kill()
	l.asks(one, lease.LockRequest{Key: "away"}, "holder")
	two.wantsNotified(1, "away", "x")
	l.has(t, "holder away x")
	l.asks(two, lease.LockRequest{Key: "own"}, "own")
	c.Masters[2].Kill()
	two.wantsNotified(1, "own", "x") // without a master
	var none *engine.NoQuorum
	if n, err := two.notified("away", "x"); !errors.As(err, &none) {
		t.Errorf("%d (%v), want that there is no quorum", n, err)
	}
}

func TestRevoke_OfALockWithoutHoldCountsNobody(t *testing.T) {
	t.Parallel()
	c := redlocktest.NewCluster(t, 3, redlocktest.Long)
	one, two := newDaemon(c), newDaemon(c)
	one.Take(lease.LockRequest{Key: "plain", TTL: time.Minute})
	two.wantsNotified(0, "plain", "x")
	for i := range c.Masters {
		c.Do(i, "SET", "foreign", "without an end")
	}
	two.wantsNotified(0, "foreign", "x")
}

// A daemon that reaches no master is not counted, and passes the request on when it is back.
func TestRevoke_IsPassedOnByADaemonThatWasSilent(t *testing.T) {
	t.Parallel()
	c := redlocktest.NewCluster(t, 3, redlocktest.Long)
	one, two, l := &daemon{}, newDaemon(c), &told{}
	c.Daemon(one.connect, redlocktest.Relayed)
	l.asks(one, lease.LockRequest{Key: "k"}, "holder")
	one.Idle()
	for _, r := range one.Daemon.Relays {
		r.Refuse()
		r.Cut()
	}
	two.wantsNotified(0, "k", "let go")
	l.has(t)
	for _, r := range one.Daemon.Relays {
		r.Accept()
	}
	redlocktest.Eventually(t, "the holder is asked", func() bool { return one.WantedText(0, "k") != nil })
	redlocktest.Eventually(t, "the holder is told", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.lines) > 0
	})
	l.has(t, "holder k let go")
}

// The one that is asked lets go, and a client that has waited gets the lock: nobody asks that one.
func TestRevoke_TheNextHolderIsNotAsked(t *testing.T) {
	t.Parallel()
	c := redlocktest.NewCluster(t, 3, redlocktest.Long)
	one, two, three, l := newDaemon(c), revoker(c), newDaemon(c), &told{}
	first := l.asks(one, lease.LockRequest{Key: "k"}, "first")
	two.wantsNotified(1, "k", "x")
	one.Of(&first).End()
	redlocktest.Eventually(t, "the lock is free", func() bool {
		for i := range c.Masters {
			if c.Do(i, "GET", "k") != nil {
				return false
			}
		}
		return true
	})
	for i := range c.Masters {
		if c.Do(i, "ZCARD", "redlockd:wanted") == int64(0) {
			t.Errorf("master %s has no request any more, which proves nothing", redlocktest.Name(i))
		}
	}
	l.asks(three, lease.LockRequest{Key: "k"}, "second")
	l.asks(three, lease.LockRequest{Key: "other"}, "other")
	two.wantsNotified(1, "other", "x") // so that daemon has read the list
	l.has(t, "first k x", "other other x")
	two.wantsNotified(1, "k", "y")
	l.has(t, "second k y")
}
