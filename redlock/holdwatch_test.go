package redlock

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
func (d *daemon) watchedHold(r LockRequest, over func(reason error)) Grant {
	d.t.Helper()
	r.TTL, r.Hold = rare, &HoldTerms{OnEnd: func(_ Grant, reason error) { over(reason) }}
	g := d.get(r)
	d.watched(g)
	return g
}

// watched waits until the masters will announce each change of the hold's copies. A late
// announcement of the last renewal makes no difference.
func (d *daemon) watched(g Grant) {
	d.t.Helper()
	eventually(d.t, "all masters watch the copies of the hold", func() bool {
		d.holds.mu.Lock()
		defer d.holds.mu.Unlock()
		h := g.Hold.(*hold)
		return len(h.watches) == len(g.Keys()) && !slices.ContainsFunc(h.watches, func(w *holdWatch) bool {
			return bits.OnesCount16(w.answered) < d.engine.Pool.N() || w.changed != 0 || bits.OnesCount16(w.gone) > d.engine.Pool.N()-d.engine.Pool.Quorum()
		})
	})
}

// takings take the lock k from its holder through a daemon.
func takings() map[string]func(d *daemon, done func()) {
	return map[string]func(d *daemon, done func()){
		"DFORCE": func(d *daemon, done func()) {
			d.Force(ForceRequest{Key: "k"}, func(bool, error) { done() })
		},
		"DEL": func(d *daemon, done func()) {
			d.Write(nil, WriteRequest{Key: "k"}, func(bool, error) { done() })
		},
		"SET XX": func(d *daemon, done func()) {
			d.Write(nil, WriteRequest{Key: "k", Effect: WriteReplaces, Value: "somebody else's", TTL: rare}, func(bool, error) { done() })
		},
		"a script that deletes": func(d *daemon, done func()) {
			d.RunScript(nil, ScriptRequest{Script: script("redis.call('DEL', KEYS[1]) return 'dropped'", "", "", "k"), Effect: ScriptForces, Keys: []Key{"k"}},
				func(ScriptOutcome, error) { done() })
		},
		"a script that overwrites": func(d *daemon, done func()) {
			d.RunScript(nil, ScriptRequest{Script: script("return redis.call('SET', KEYS[1], 'other', 'PX', 60000)", "", "", "k"), Effect: ScriptForces, Keys: []Key{"k"}},
				func(ScriptOutcome, error) { done() })
		},
	}
}

func TestHoldWatch_TheSameDaemonNotifiesTheHolderBeforeItAnswers(t *testing.T) {
	c := newCluster(t, 3, rare)
	d := c.daemon()
	for name, take := range takings() {
		var told sequence
		d.watchedHold(LockRequest{Key: "k"}, func(reason error) { told.add(fmt.Sprint("told ", reason)) })
		answered := make(chan struct{})
		take(d, func() { told.add("answered"); close(answered) })
		receive(t, answered)
		told.mu.Lock()
		if want := []string{"told " + ErrLostForced.Error(), "answered"}; !slices.Equal(told.lines, want) {
			t.Errorf("%s: %q, want %q", name, told.lines, want)
		}
		told.mu.Unlock()
		d.idle()
		for i := range c.servers {
			c.do(i, "DEL", "k")
		}
	}
}

func TestHoldWatch_TheHolderIsNotifiedWhenAnotherDaemonTakesItsLock(t *testing.T) {
	c := newCluster(t, 3, rare)
	d, other := c.daemon(), c.daemon()
	for name, take := range takings() {
		lost := make(chan error, 2)
		d.watchedHold(LockRequest{Key: "k"}, func(reason error) { lost <- reason })
		take(other, func() {})
		if reason := receive(t, lost); !errors.Is(reason, ErrLostHeld) {
			t.Errorf("%s: it ended with %v", name, reason)
		}
		other.idle()
		d.idle()
		for i := range c.servers {
			c.do(i, "DEL", "k")
		}
	}
}

func TestHoldWatch_TheHolderIsNotifiedWhenItsLockIsTakenOnTheMasters(t *testing.T) {
	c := newCluster(t, 5, rare)
	d := c.daemon()
	for name, words := range map[string][]any{
		"DEL": {"DEL", "k"}, "UNLINK": {"UNLINK", "k"}, "GETDEL": {"GETDEL", "k"}, "RENAME": {"RENAME", "k", "elsewhere"},
		"SET": {"SET", "k", "other", "PX", 60000}, "PEXPIRE": {"PEXPIRE", "k", 0},
	} {
		for _, r := range []LockRequest{{Key: "k"}, {Key: "j", More: []Key{"k"}}} {
			lost := make(chan error, 2)
			g := d.watchedHold(r, func(reason error) { lost <- reason })
			for i := range 3 {
				c.do(i, words...)
			}
			if reason := receive(t, lost); !errors.Is(reason, ErrLostHeld) {
				t.Errorf("%s: it ended with %v", name, reason)
			}
			if _, err := d.prolongAll(g.Token, rare, "k"); !errors.Is(err, ErrNotHeld) {
				t.Errorf("%s: %v", name, err)
			}
			d.idle()
			for i := range c.servers {
				c.do(i, "DEL", "j", "k", "elsewhere")
			}
		}
	}
}

// Other holders change the key all the time, so only its end counts.
func TestHoldWatch_ReadersAndPermitsAreNotifiedWhenTheirKeyIsGone(t *testing.T) {
	c := newCluster(t, 3, rare)
	d, other := c.daemon(), c.daemon()
	for name, r := range map[string]LockRequest{"reader": {Key: "k", Mode: Shared}, "permit": {Key: "k", Mode: Permits, Limit: 3}} {
		lost := make(chan error, 2)
		g := d.watchedHold(r, func(reason error) { lost <- reason })
		beside := r
		beside.TTL = long
		other.free("k", other.get(beside).Token)
		d.watched(g) // again: it has been queried, not lost
		if n := d.Counters().Extended; len(lost) > 0 || n > 0 {
			t.Errorf("%s: it was renewed %d times because of another holder, or lost", name, n)
		}
		other.forced("k")
		if reason := receive(t, lost); !errors.Is(reason, ErrLostHeld) {
			t.Errorf("%s: it ended with %v", name, reason)
		}
		d.idle()
	}
}

// The renewals change the copies themselves; none of them may cause another one.
func TestHoldWatch_ARenewalCausesNoOther(t *testing.T) {
	c := newCluster(t, 3, rare)
	d := c.daemon()
	g := d.watchedHold(LockRequest{Key: "k"}, func(error) {})
	for n := int64(1); n <= 20; n++ {
		d.holds.mu.Lock()
		d.holds.moveLocked(g.Hold.(*hold), d.clock.Now())
		d.holds.mu.Unlock()
		eventually(t, "it is renewed", func() bool { return d.Counters().Extended >= n })
		d.watched(g)
		if got := d.Counters().Extended; got != n {
			t.Fatalf("%d renewals, want %d", got, n)
		}
	}
	// The copy of one master is not enough to lose a lock. A master that extended its copy after
	// the query may have announced that, and is a second one then: the next try has no such.
	renewed := int64(20)
	for range 10 {
		c.do(0, "DEL", "k")
		eventually(t, "the master has announced it", func() bool {
			d.holds.mu.Lock()
			defer d.holds.mu.Unlock()
			return len(g.Hold.(*hold).watches) == 0 || g.Hold.(*hold).watches[0].gone&1 != 0
		})
		d.watched(g)
		if n := d.Counters().Extended; n == renewed && d.Holds() == 1 {
			return
		}
		renewed = d.Counters().Extended
	}
	t.Errorf("each loss of one copy caused a renewal, %d in all; %d holds", renewed, d.Holds())
}

// An extension changes the copies, too: the lock stays held, and is watched again.
func TestHoldWatch_AnExtensionThroughAnotherDaemonLosesNothing(t *testing.T) {
	c := newCluster(t, 3, 2*rare)
	d, other := c.daemon(), c.daemon()
	lost := make(chan error, 2)
	g := d.watchedHold(LockRequest{Key: "k"}, func(reason error) { lost <- reason })
	if _, err := other.prolongAll(g.Token, 2*rare, "k"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the hold was renewed", func() bool { return d.Counters().Extended == 1 })
	d.watched(g)
	if len(lost) > 0 {
		t.Errorf("it was lost: %v", <-lost)
	}
	other.forced("k")
	receive(t, lost)
}

// Without its announcement a loss is found by the next renewal.
func TestHoldWatch_ALostAnnouncementFallsBackToTheRenewal(t *testing.T) {
	c := newCluster(t, 3, rare)
	d := c.daemon()
	lost := make(chan error, 2)
	g := d.watchedHold(LockRequest{Key: "k"}, func(reason error) { lost <- reason })
	d.holds.mu.Lock()
	d.holds.unwatchLocked(g.Hold.(*hold))
	d.holds.mu.Unlock()
	for i := range c.servers {
		c.do(i, "DEL", "k")
	}
	d.idle()
	if len(lost) > 0 {
		t.Fatalf("it ended with %v, and nothing can have announced it", <-lost)
	}
	d.holds.mu.Lock()
	d.holds.moveLocked(g.Hold.(*hold), d.clock.Now())
	d.holds.mu.Unlock()
	if reason := receive(t, lost); !errors.Is(reason, ErrLostHeld) {
		t.Errorf("it ended with %v", reason)
	}
}

// A lock without HOLD costs nothing of it, and the holds that are watched are bounded.
func TestHoldWatch_IsForHoldsAloneAndBounded(t *testing.T) {
	c := newCluster(t, 3, rare)
	d := c.daemon()
	d.get(LockRequest{Key: "plain", TTL: rare})
	if n := countLines(c.do(0, "CLIENT", "LIST").(string), "name=redlockd-news"); n != 0 {
		t.Errorf("%d connections for news, and no hold", n)
	}
	g := d.watchedHold(LockRequest{Key: "k"}, func(error) {})
	d.holds.mu.Lock()
	defer d.holds.mu.Unlock()
	d.holds.unwatchLocked(g.Hold.(*hold))
	d.holds.watched = maxWatchedKeys
	d.holds.watchLocked(g.Hold.(*hold))
	if g.Hold.(*hold).watches != nil {
		t.Error("more is watched than allowed")
	}
	d.holds.watched = maxWatchedKeys - 1
	d.holds.watchLocked(g.Hold.(*hold))
	if len(g.Hold.(*hold).watches) != 1 || d.holds.watched != maxWatchedKeys {
		t.Error("less is watched than allowed")
	}
	d.holds.watched = 1
}
