package redlock

import (
	"errors"
	"sync"
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

// The clock is the daemon's and the masters'. After a standstill the masters may take the whole master
// timeout to answer the renewal, and other clients may have the lock before that.
func TestHold_ThatEndsWhileItsRenewalIsUnderWayIsReportedThen(t *testing.T) {
	t.Parallel()
	const ttl = 30 * time.Second // as long as the masters may take
	c := newStillClock()
	d := newPunctualDaemonWith(t, c)
	lost := make(chan error, 2)
	d.take(LockRequest{Key: "k", TTL: ttl, Hold: &HoldTerms{OnEnd: func(_ Grant, reason error, _ time.Duration) { lost <- reason }}})
	d.quiet()
	d.standStill(1, 2, 3, 4)
	fast := d.engine.Pool.Embedded().At(0)
	c.move(ttl/3 + time.Second)
	eventually(t, "it is renewed there", func() bool { return fast.TTL("k") >= ttl })
	c.move(ttl * 2 / 3)
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
	if d.Holds() > 0 || len(over) > 0 {
		t.Errorf("%d are renewed, %d have ended", d.Holds(), len(over))
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
			d.write(WriteRequest{Key: "k"})
		}, false},
		"PEXPIRE": {func(d *daemon, _ Token) {
			d.write(WriteRequest{Key: "k", Effect: WriteExpires, TTL: brief})
		}, true},
		"SET IFEQ, or a script": {func(d *daemon, token Token) {
			d.sets(ExtendRequest{Key: "k", Token: token, TTL: brief})
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

// A renewal moves the end of a copy, by which the undo of an upgrade that failed finds it. The clock
// is the daemon's and the masters'. It stands still until it is moved.
func TestHold_IsNotRenewedWhileItsReaderRequestsTheUpgrade(t *testing.T) {
	t.Parallel()
	for name, slow := range map[string][]int{"not decided": {1, 2, 3, 4}, "the only yes comes late": {0}} {
		t.Run(name, func(t *testing.T) { renewedAfterTheUpgrade(t, slow) })
	}
}

func renewedAfterTheUpgrade(t *testing.T, slow []int) {
	const ttl = time.Minute
	c := newStillClock()
	d := newPunctualDaemonWith(t, c)
	first, fast := d.engine.Pool.Embedded().At(0), d.engine.Pool.Embedded().At(1-slow[0])
	terms := &HoldTerms{OnEnd: func(Grant, error, time.Duration) {}}
	d.twoReaders(LockRequest{Key: "k", TTL: ttl, Hold: terms})
	d.take(LockRequest{Key: "renewed", TTL: ttl, Hold: terms}) // in one flush with "k", if that were
	d.quiet()
	goOn := d.standStill(slow...)
	answer := d.upgrade("k")
	refused := func() {
		if a := receive(t, answer); !errors.Is(a.err, ErrHeld) {
			t.Fatalf("%v beside another reader, want ErrHeld", a.err)
		}
	}
	if fast != first {
		refused()
	} else {
		eventually(t, "the first master has the writer", func() bool { return first.Server().Type("k") == "string" })
	}
	const renewal = ttl/3 + time.Second // is due, before the masters are too late
	left := fast.TTL("k") - renewal
	c.move(renewal)
	eventually(t, "what is due is renewed there", func() bool { return fast.TTL("renewed") >= ttl })
	if now := fast.TTL("k"); now != left {
		t.Errorf("the copy lasts %v, want %v", now, left)
	}
	goOn()
	if fast == first {
		refused()
	}
	eventually(t, "the reader is one again, and renewed", func() bool {
		c.move(time.Millisecond)
		return first.Server().Type("k") == "zset" && d.Counters().Extended > 1
	})
}

// An extension does as a renewal does.
func TestUpgrade_ThatIsRefusedIsTakenBackBeforeTheNextOperationOfItsToken(t *testing.T) {
	t.Parallel()
	d := newPureDaemon(t, Options{})
	d.twoReaders(LockRequest{Key: "k", TTL: time.Minute})
	goOn := d.standStill(0)
	if a := receive(t, d.upgrade("k")); !errors.Is(a.err, ErrHeld) {
		t.Fatalf("%v beside another reader, want ErrHeld", a.err)
	}
	answer := make(chan lockAnswer, 1)
	d.Extend(nil, ExtendRequest{Key: "k", Token: chosen, TTL: time.Minute}, func(g Grant, err error) { answer <- lockAnswer{g, err} })
	goOn()
	if a := receive(t, answer); a.err != nil {
		t.Fatal(a.err)
	}
	d.quiet()
	if kind := d.engine.Pool.Embedded().At(0).Server().Type("k"); kind != "zset" {
		t.Errorf("the first master has a %s, want readers", kind)
	}
}

const chosen = "a token of the client's"

// twoReaders makes chosen a reader beside another one, who is not on the first master.
func (d *pureDaemon) twoReaders(r LockRequest) {
	d.t.Helper()
	d.take(LockRequest{Key: r.Key, Mode: Readers})
	d.quiet()
	d.engine.Pool.Embedded().At(0).Server().Del(string(r.Key))
	r.Mode, r.Token = Readers, chosen
	d.take(r)
	d.quiet()
}

func (d *pureDaemon) upgrade(key Key) <-chan lockAnswer {
	answer := make(chan lockAnswer, 1)
	d.Lock(nil, LockRequest{Key: key, Token: chosen, TTL: time.Minute}, func(g Grant, err error) { answer <- lockAnswer{g, err} })
	return answer
}

// standStill keeps masters from executing anything until goOn is called.
func (d *pureDaemon) standStill(masters ...int) (goOn func()) {
	resume := make(chan struct{})
	goOn = sync.OnceFunc(func() { close(resume) })
	d.t.Cleanup(goOn)
	for _, lane := range masters {
		stands := make(chan struct{})
		go d.engine.Pool.Embedded().At(lane).Turn(func() { close(stands); <-resume })
		<-stands
	}
	return goOn
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
		"its connection ends":                     {LockRequest{}, func(d *daemon, g Grant) { d.holds.Of(&g).End() }, 0},
		"its connection ends, with a delay":       {LockRequest{Linger: delay}, func(d *daemon, g Grant) { d.holds.Of(&g).End() }, delay},
		"its connection ends, with its own token": {LockRequest{Token: "a-token-of-its-own"}, func(d *daemon, g Grant) { d.holds.Of(&g).End() }, long / 2},
		"its user is removed":                     {LockRequest{Linger: delay}, func(d *daemon, g Grant) { d.holds.Of(&g).Abandon(errors.New("removed")) }, long/2 + delay},
		"it is released, not yet acknowledged":    {LockRequest{}, func(d *daemon, g Grant) { d.free("k", g.Token) }, long / 2},
		"another connection holds it by its token": {LockRequest{Token: "a-token-of-its-own"}, func(d *daemon, g Grant) {
			d.get(LockRequest{Key: "k", Token: g.Token, TTL: long, Hold: &HoldTerms{OnEnd: func(Grant, error, time.Duration) {}}})
		}, long / 2},
		"it is taken by force": {LockRequest{Linger: delay}, func(d *daemon, _ Grant) { d.Force(ForceRequest{Key: "k"}, func(bool, error) {}) }, 0},
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
