package redlock

import (
	"errors"
	"slices"
	"testing"
	"time"
)

// leftOver is a wait with HOLD and a token that holds the key already, whose client leaves
// during the query of the masters. It returns when their answer is in.
func (d *pureDaemon) leftOver(t *testing.T, r LockRequest) (over chan error) {
	t.Helper()
	over = make(chan error, 2)
	r.Hold = &HoldTerms{OnEnd: func(_ Grant, reason error, _ time.Duration) { over <- reason }}
	out := make(chan waited, 1)
	before := d.Counters().Acquired
	leave := d.waitFor("w", r, out)
	leave()
	if w := <-out; !errors.Is(w.err, ErrLeft) {
		t.Fatalf("%v, want ErrLeft (the answer was faster than the leave)", w.err)
	}
	eventually(t, "the masters have answered", func() bool { return d.Counters().Acquired > before })
	return over
}

// The copies of a grant that waited in the lanes' queues end later than its validity
// does. All of them are given back once the hold is lost.
func TestHold_ThatIsLostLeavesNoCopyOfAGrantThatWasWrittenLate(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	// So much longer the copies last. A heartbeat under way would keep the lock from being sent.
	d := c.daemon(relayed, blind, timeout(30*time.Second))
	for _, r := range d.relays {
		r.Pause()
	}
	other := d.request(LockRequest{Key: "other", TTL: long}) // every lane waits for its answer
	eventually(t, "it has been sent", func() bool {
		return !slices.ContainsFunc(d.Reports(0), func(m MasterReport) bool { return m.InFlight == 0 })
	})
	lost := make(chan error, 1)
	answer := d.request(LockRequest{Key: "k", TTL: 5 * time.Second, Hold: &HoldTerms{
		MaxTime: time.Millisecond, OnEnd: func(_ Grant, reason error, _ time.Duration) { lost <- reason },
	}})
	time.Sleep(300 * time.Millisecond) // the drift that is allowed for is 52 ms
	for _, r := range d.relays {
		r.Resume()
	}
	if a := receive(t, answer); a.err != nil {
		t.Fatal(a.err)
	}
	d.free("other", receive(t, other).grant.Token)
	if reason := receive(t, lost); !errors.Is(reason, ErrLostMax) {
		t.Fatalf("lost because %v, want %v", reason, ErrLostMax)
	}
	d.settled(0, 1, 2)
	if !c.empty(0, 1, 2) {
		t.Errorf("copies are left: %q", c.copies("k"))
	}
}

// Its timers stand still meanwhile, and its clock does not.
func TestHold_ThatEndedWhileTheMachineWasSuspendedIsReportedSoonAfter(t *testing.T) {
	t.Parallel()
	const lasts = 30 * time.Minute // a third of it is far longer than this test
	d := newCluster(t, 3, lasts).daemon()
	lost := make(chan error, 1)
	d.get(LockRequest{Key: "k", TTL: lasts, Hold: &HoldTerms{OnEnd: func(_ Grant, reason error, _ time.Duration) { lost <- reason }}})
	sleepUntil(t, time.Now().Add(300*time.Millisecond), "the copies have been checked once")
	d.clock.Ahead.Add(int64(lasts))
	if reason := receive(t, lost); !errors.Is(reason, ErrLostExpired) {
		t.Errorf("lost because %v, want %v", reason, ErrLostExpired)
	}
}

// No client is left that could end it.
func TestHold_OfAClientThatLeftIsNotRenewed(t *testing.T) {
	t.Parallel()
	d := newPureDaemon(t, Options{})
	const token = "a token of the client's"
	d.take(LockRequest{Key: "k", Token: token, TTL: time.Minute})
	d.quiet()
	over := d.leftOver(t, LockRequest{Key: "k", Token: token, TTL: time.Minute, Wait: time.Minute})
	eventually(t, "nothing is renewed", func() bool { return d.Holds() == 0 })
	if reason := receive(t, over); reason != nil {
		t.Errorf("it ended with %v", reason)
	}
	if _, err := d.lock(LockRequest{Key: "k", TTL: long}); !errors.Is(err, ErrHeld) {
		t.Errorf("what the token had before is gone: %v", err)
	}
}

// Commands of one Redis take a lock from its holder, or end it early: the holder is notified
// first, or keeps it.
func TestHold_IsReportedLostBeforeAnotherGrant(t *testing.T) {
	t.Parallel()
	const brief = 5 * time.Second
	for name, c := range map[string]struct {
		end   func(d *daemon, token Token)
		keeps bool
	}{
		"DEL": {func(d *daemon, _ Token) { d.write(WriteRequest{Key: "k"}) }, false},
		"SET XX": {func(d *daemon, _ Token) {
			d.write(WriteRequest{Key: "k", Effect: WriteReplaces, Value: "somebody else's", TTL: long})
		}, false},
		"discard": {func(d *daemon, _ Token) {
			d.runScript(ScriptRequest{Script: script("redis.call('DEL', KEYS[1]) return 'dropped'", "", "", "k"), Effect: ScriptForces})
		}, false},
		"PEXPIRE": {func(d *daemon, _ Token) {
			d.write(WriteRequest{Key: "k", Effect: WriteExpires, TTL: brief})
		}, true},
		"SET IFEQ": {func(d *daemon, token Token) {
			d.write(WriteRequest{Key: "k", Effect: WriteReplaces, Value: token, Equal: token, TTL: brief})
		}, true},
		"script": {func(d *daemon, token Token) {
			d.runScript(ScriptRequest{Script: script(scriptRenew, string(token), "5000", "k"), Effect: ScriptExtends, TTL: brief})
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			m := newCluster(t, 3, long)
			d := m.daemon()
			lost := make(chan error, 2)
			g := d.get(LockRequest{Key: "k", TTL: long, Hold: &HoldTerms{OnEnd: func(_ Grant, reason error, _ time.Duration) { lost <- reason }}})
			c.end(d, g.Token)
			if !c.keeps {
				if len(lost) != 1 || d.Holds() != 0 {
					t.Errorf("it is over, its holder was told %d times, %d are renewed", len(lost), d.Holds())
				}
				return
			}
			eventually(t, "it lasts as long as before", func() bool {
				for i := range m.servers {
					if left, _ := m.do(i, "PTTL", "k").(int64); left < (long / 2).Milliseconds() {
						return false
					}
				}
				return true
			})
			if len(lost) > 0 || d.Holds() != 1 {
				t.Errorf("its holder was told %d times, %d are renewed", len(lost), d.Holds())
			}
		})
	}
}

// A renewal moves the end of a copy, by which the undo of an upgrade that failed finds it.
func TestHold_IsNotRenewedWhileItsReaderRequestsTheUpgrade(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	// The renewal is due while the masters are asked, and can wait until they have answered.
	d, other := c.daemon(relayed, timeout(4*time.Second)), c.daemon(relayed)
	const token, ttl = "a token of the client's", 8 * time.Second
	other.relays[0].Cut()
	other.relays[0].Refuse()
	other.await(0, "down")
	other.get(LockRequest{Key: "k", TTL: long, Mode: Shared}) // on b and c alone
	d.get(LockRequest{Key: "k", TTL: ttl, Mode: Shared, Token: token, Hold: &HoldTerms{OnEnd: func(Grant, error, time.Duration) {}}})
	d.relays[1].Pause()
	d.relays[2].Pause()
	answer := make(chan lockAnswer, 1)
	d.Lock(nil, LockRequest{Key: "k", Token: token, TTL: long}, func(g Grant, err error) { answer <- lockAnswer{g, err} })
	eventually(t, "a has the writer", func() bool { return c.do(0, "TYPE", "k") == "string" })
	ends := c.ends(0, "k")
	eventually(t, "the copy on a is another one", func() bool { return c.ends(0, "k") != ends })
	d.relays[1].Resume()
	d.relays[2].Resume()
	if a := <-answer; a.err == nil {
		t.Fatal("it became the writer beside another reader")
	}
	eventually(t, "a has a reader again", func() bool { return c.do(0, "TYPE", "k") == "zset" })
}

// The owner of a renewal learns with its end for how long the keys stay taken.
func TestHold_ReportsForHowLongTheKeysStayTaken(t *testing.T) {
	t.Parallel()
	const delay = 30 * time.Second
	for name, c := range map[string]struct {
		request LockRequest
		end     func(d *daemon, g Grant)
		atLeast time.Duration // 0: they are released
	}{
		"its connection ends":                     {LockRequest{}, func(_ *daemon, g Grant) { g.Hold.End() }, 0},
		"its connection ends, with a delay":       {LockRequest{Delay: delay}, func(_ *daemon, g Grant) { g.Hold.End() }, delay},
		"its connection ends, with its own token": {LockRequest{Token: "a-token-of-its-own"}, func(_ *daemon, g Grant) { g.Hold.End() }, long / 2},
		"its user is removed":                     {LockRequest{Delay: delay}, func(_ *daemon, g Grant) { g.Hold.Abandon(errors.New("removed")) }, long/2 + delay},
		"it is released, not yet acknowledged":    {LockRequest{}, func(d *daemon, g Grant) { d.free("k", g.Token) }, long / 2},
		"another connection holds it by its token": {LockRequest{Token: "a-token-of-its-own"}, func(d *daemon, g Grant) {
			d.get(LockRequest{Key: "k", Token: g.Token, TTL: long, Hold: &HoldTerms{OnEnd: func(Grant, error, time.Duration) {}}})
		}, long / 2},
		"it is taken by force": {LockRequest{Delay: delay}, func(d *daemon, _ Grant) { d.Force(ForceRequest{Key: "k"}, func(bool, error) {}) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			d := newCluster(t, 3, long).daemon()
			over := make(chan time.Duration, 1)
			terms := &HoldTerms{OnEnd: func(_ Grant, _ error, goesOn time.Duration) { over <- goesOn }}
			r := c.request
			r.Key, r.TTL, r.Hold = "k", long, terms
			c.end(d, d.get(r))
			if goesOn := receive(t, over); goesOn < c.atLeast || c.atLeast == 0 && goesOn > 0 {
				t.Errorf("they stay taken for %v, want %v", goesOn, c.atLeast)
			}
		})
	}
}
