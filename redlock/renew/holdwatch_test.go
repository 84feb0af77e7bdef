package renew

// holdwatch_test.go: the holder of a lock that others take away is notified. No renewal is due
// before a test ends, so only the masters can have announced the loss.

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"sync"
	"testing"
	"time"

	"redlockd/redlock/engine"
	"redlockd/redlock/inspect"
	"redlockd/redlock/lease"
	"redlockd/redlock/redlocktest"
)

// rare is a ttl whose third no test lasts.
const rare = time.Hour

// sequence is what happened, in order.
type sequence struct {
	mu    sync.Mutex
	lines []string
}

func (s *sequence) add(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, line)
}

// watchedHold takes a lock with HOLD and returns when all masters have answered the watch.
func (d *daemon) watchedHold(r lease.LockRequest, over func(reason error)) lease.Grant {
	d.T.Helper()
	r.TTL = rare
	g := d.Take(r)
	d.Begin(g, Terms{OnEnd: func(_ lease.Grant, reason error, _ time.Duration) { over(reason) }})
	d.Idle()
	d.watched(g)
	return g
}

// watched waits until the masters will announce each change of the hold's copies. A late
// announcement of the last renewal makes no difference.
func (d *daemon) watched(g lease.Grant) {
	d.T.Helper()
	redlocktest.Eventually(d.T, "all masters watch the copies of the hold", func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		h := d.holdOf(g)
		return len(h.watches) == len(g.Keys()) && !slices.ContainsFunc(h.watches, func(w *holdWatch) bool {
			return bits.OnesCount16(w.answered) < d.engine.Pool.N() || w.changed != 0 || bits.OnesCount16(w.gone) > d.engine.Pool.N()-d.engine.Pool.Quorum()
		})
	})
}

// takings take the lock k from its holder through a daemon.
func takings() map[string]func(d *daemon, done func()) {
	return map[string]func(d *daemon, done func()){
		"DFORCE": func(d *daemon, done func()) {
			d.inspector.Force(inspect.ForceRequest{Key: "k"}, func(bool, error) { done() })
		},
		"DEL": func(d *daemon, done func()) {
			d.Write(nil, lease.WriteRequest{Key: "k"}, func(bool, error) { done() })
		},
		"SET XX": func(d *daemon, done func()) {
			d.Write(nil, lease.WriteRequest{Key: "k", Effect: lease.WriteReplaces, Value: "somebody else's", TTL: rare}, func(bool, error) { done() })
		},
	}
}

// forced releases the lock k, which is held, by force.
func (d *daemon) forced() {
	d.T.Helper()
	released := make(chan bool, 1)
	d.inspector.Force(inspect.ForceRequest{Key: "k"}, func(was bool, err error) { released <- was && err == nil })
	if !redlocktest.Receive(d.T, released) {
		d.T.Error("k was not released by force")
	}
	d.Idle()
}

func TestHoldWatch_TheSameDaemonNotifiesTheHolderBeforeItAnswers(t *testing.T) {
	c := redlocktest.NewCluster(t, 3, rare)
	d := newDaemon(c)
	for name, take := range takings() {
		var told sequence
		d.watchedHold(lease.LockRequest{Key: "k"}, func(reason error) { told.add(fmt.Sprint("told ", reason)) })
		answered := make(chan struct{})
		take(d, func() { told.add("answered"); close(answered) })
		redlocktest.Receive(t, answered)
		told.mu.Lock()
		if want := []string{"told " + ErrLostForced.Error(), "answered"}; !slices.Equal(told.lines, want) {
			t.Errorf("%s: %q, want %q", name, told.lines, want)
		}
		told.mu.Unlock()
		d.Idle()
		for i := range c.Masters {
			c.Do(i, "DEL", "k")
		}
	}
}

func TestHoldWatch_TheHolderIsNotifiedWhenAnotherDaemonTakesItsLock(t *testing.T) {
	c := redlocktest.NewCluster(t, 3, rare)
	d, other := newDaemon(c), newDaemon(c)
	for name, take := range takings() {
		lost := make(chan error, 2)
		d.watchedHold(lease.LockRequest{Key: "k"}, func(reason error) { lost <- reason })
		take(other, func() {})
		if reason := redlocktest.Receive(t, lost); !errors.Is(reason, ErrLostHeld) {
			t.Errorf("%s: it ended with %v", name, reason)
		}
		other.Idle()
		d.Idle()
		for i := range c.Masters {
			c.Do(i, "DEL", "k")
		}
	}
}

func TestHoldWatch_TheHolderIsNotifiedWhenItsLockIsTakenOnTheMasters(t *testing.T) {
	c := redlocktest.NewCluster(t, 5, rare)
	d := newDaemon(c)
	for name, words := range map[string][]any{
		"DEL": {"DEL", "k"}, "UNLINK": {"UNLINK", "k"}, "GETDEL": {"GETDEL", "k"}, "RENAME": {"RENAME", "k", "elsewhere"},
		"SET": {"SET", "k", "other", "PX", 60000}, "PEXPIRE": {"PEXPIRE", "k", 0},
	} {
		for _, r := range []lease.LockRequest{{Key: "k"}, {Key: "j", More: []engine.Key{"k"}}} {
			lost := make(chan error, 2)
			g := d.watchedHold(r, func(reason error) { lost <- reason })
			for i := range 3 {
				c.Do(i, words...)
			}
			if reason := redlocktest.Receive(t, lost); !errors.Is(reason, ErrLostHeld) {
				t.Errorf("%s: it ended with %v", name, reason)
			}
			if _, err := d.Prolong(lease.ExtendRequest{Key: "k", Token: g.Token, TTL: rare}); !errors.Is(err, engine.ErrNotHeld) {
				t.Errorf("%s: %v", name, err)
			}
			d.Idle()
			for i := range c.Masters {
				c.Do(i, "DEL", "j", "k", "elsewhere")
			}
		}
	}
}

// Other holders change the key all the time, so only its end counts.
func TestHoldWatch_ReadersAndPermitsAreNotifiedWhenTheirKeyIsGone(t *testing.T) {
	c := redlocktest.NewCluster(t, 3, rare)
	d, other := newDaemon(c), newDaemon(c)
	for name, r := range map[string]lease.LockRequest{"reader": {Key: "k", Mode: lease.Readers}, "permit": {Key: "k", Mode: lease.PermitsOf(3)}} {
		lost := make(chan error, 2)
		g := d.watchedHold(r, func(reason error) { lost <- reason })
		beside := r
		beside.TTL = redlocktest.Long
		other.Free("k", other.Get(beside).Token)
		d.watched(g) // again: it has been queried, not lost
		if n := d.extended(); len(lost) > 0 || n > 0 {
			t.Errorf("%s: it was renewed %d times because of another holder, or lost", name, n)
		}
		other.forced()
		if reason := redlocktest.Receive(t, lost); !errors.Is(reason, ErrLostHeld) {
			t.Errorf("%s: it ended with %v", name, reason)
		}
		d.Idle()
	}
}

// The renewals change the copies themselves; none of them may cause another one.
func TestHoldWatch_ARenewalCausesNoOther(t *testing.T) {
	c := redlocktest.NewCluster(t, 3, rare)
	d := newDaemon(c)
	g := d.watchedHold(lease.LockRequest{Key: "k"}, func(error) {})
	for n := int64(1); n <= 20; n++ {
		d.mu.Lock()
		d.moveLocked(d.holdOf(g), d.engine.Clock.Now())
		d.mu.Unlock()
		redlocktest.Eventually(t, "it is renewed", func() bool { return d.extended() >= n })
		d.watched(g)
		if got := d.extended(); got != n {
			t.Fatalf("%d renewals, want %d", got, n)
		}
	}
	// The copy of one master is not enough to lose a lock. A master that extended its copy after
	// the query may have announced that, and is a second one then: the next try has no such.
	renewed := int64(20)
	for range 10 {
		c.Do(0, "DEL", "k")
		redlocktest.Eventually(t, "the master has announced it", func() bool {
			d.mu.Lock()
			defer d.mu.Unlock()
			return len(d.holdOf(g).watches) == 0 || d.holdOf(g).watches[0].gone&1 != 0
		})
		d.watched(g)
		if n := d.extended(); n == renewed && d.Count() == 1 {
			return
		}
		renewed = d.extended()
	}
	t.Errorf("each loss of one copy caused a renewal, %d in all; %d holds", renewed, d.Count())
}

// An extension changes the copies, too: the lock stays held, and is watched again.
func TestHoldWatch_AnExtensionThroughAnotherDaemonLosesNothing(t *testing.T) {
	c := redlocktest.NewCluster(t, 3, 2*rare)
	d, other := newDaemon(c), newDaemon(c)
	lost := make(chan error, 2)
	g := d.watchedHold(lease.LockRequest{Key: "k"}, func(reason error) { lost <- reason })
	if _, err := other.Prolong(lease.ExtendRequest{Key: "k", Token: g.Token, TTL: 2 * rare}); err != nil {
		t.Fatal(err)
	}
	other.Idle()
	redlocktest.Eventually(t, "the hold was renewed", func() bool { return d.extended() >= 1 })
	d.watched(g)
	if len(lost) > 0 {
		t.Errorf("it was lost: %v", <-lost)
	}
	other.forced()
	redlocktest.Receive(t, lost)
}

// Without its announcement a loss is found by the next renewal.
func TestHoldWatch_ALostAnnouncementFallsBackToTheRenewal(t *testing.T) {
	c := redlocktest.NewCluster(t, 3, rare)
	d := newDaemon(c)
	lost := make(chan error, 2)
	g := d.watchedHold(lease.LockRequest{Key: "k"}, func(reason error) { lost <- reason })
	d.mu.Lock()
	d.unwatchLocked(d.holdOf(g))
	d.mu.Unlock()
	for i := range c.Masters {
		c.Do(i, "DEL", "k")
	}
	d.Idle()
	if len(lost) > 0 {
		t.Fatalf("it ended with %v, and nothing can have announced it", <-lost)
	}
	d.mu.Lock()
	d.moveLocked(d.holdOf(g), d.engine.Clock.Now())
	d.mu.Unlock()
	if reason := redlocktest.Receive(t, lost); !errors.Is(reason, ErrLostHeld) {
		t.Errorf("it ended with %v", reason)
	}
}

// A lock without HOLD costs nothing of it, and the holds that are watched are bounded.
func TestHoldWatch_IsForHoldsAloneAndBounded(t *testing.T) {
	c := redlocktest.NewCluster(t, 3, rare)
	d := newDaemon(c)
	d.Get(lease.LockRequest{Key: "plain", TTL: rare})
	if n := redlocktest.CountLines(c.Do(0, "CLIENT", "LIST").(string), "name=redlockd-news"); n != 0 {
		t.Errorf("%d connections for news, and no hold", n)
	}
	g := d.watchedHold(lease.LockRequest{Key: "k"}, func(error) {})
	d.mu.Lock()
	defer d.mu.Unlock()
	d.unwatchLocked(d.holdOf(g))
	d.Holds.watched = maxWatchedKeys
	d.watchLocked(d.holdOf(g))
	if d.holdOf(g).watches != nil {
		t.Error("more is watched than allowed")
	}
	d.Holds.watched = maxWatchedKeys - 1
	d.watchLocked(d.holdOf(g))
	if len(d.holdOf(g).watches) != 1 || d.Holds.watched != maxWatchedKeys {
		t.Error("less is watched than allowed")
	}
	d.Holds.watched = 1
}
