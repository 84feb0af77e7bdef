package redlock

// delay_test.go: locks whose key stays taken for a while after the validity, LockRequest.Linger.

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"redlockd/redlock/events"
	"redlockd/redlock/redlocktest"
)

const delayTTL, delay = 20 * time.Second, 10 * time.Second

// lastsUntil moves the clock through the rest of a lock's time: the key is held just before the
// end of its copies, and free a little later.
func (d *pureDaemon) lastsUntil(c *stillClock, what string, ends time.Duration) {
	d.t.Helper()
	d.quiet()
	c.move(ends + beyondLease - c.Now())
	if _, err := d.lock(LockRequest{Key: "k", TTL: time.Minute}); !errors.Is(err, ErrHeld) {
		d.t.Errorf("%s: %v while the delay runs, want that it is held", what, err)
	}
	d.quiet()
	c.move(2 * rounding)
	g := d.take(LockRequest{Key: "k", TTL: time.Minute})
	d.quiet()
	if was, err := d.unlock(UnlockRequest{Key: "k", Token: g.Token}); !was || err != nil {
		d.t.Fatal(was, err)
	}
}

// The clock is the daemon's and the masters'. It stands still until it is moved.
func TestDelay_TheKeyStaysTakenForItAfterTheValidityInEveryMode(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]LockRequest{
		"plain": {}, "a caller's token": {Token: "12345678"}, "a reader": {Mode: Readers}, "a permit": {Mode: PermitsOf(1)},
		"several keys": {More: []Key{"l"}}, "FAIR": {Fair: true},
	} {
		c := newStillClock()
		d := newPunctualDaemonWith(t, c)
		j := listen(t, d.Locker)
		r.Key, r.TTL, r.Linger, r.Requester = "k", delayTTL, delay, &Requester{Meta: "who"}
		began := c.Now()
		g := d.take(r)
		if g.Validity() > delayTTL {
			t.Errorf("%s: valid for %v: the delay is not the holder's", name, g.Validity())
		}
		d.quiet()
		c.move(delayTTL + delay/2)
		if _, err := d.extend(ExtendRequest{Key: "k", Token: g.Token, TTL: delayTTL}); !errors.Is(err, ErrNotHeld) {
			t.Errorf("%s: extended while the delay runs: %v", name, err)
		}
		shown := make(chan LockView, 1)
		d.ReadLock(0, "k", func(v LockView, err error) { shown <- v })
		if v := <-shown; v.State != LockHeld || len(v.Holders) != 1 || v.Holders[0].Note == nil {
			t.Errorf("%s: shown as %+v while the delay runs, want held, with its note", name, v)
		}
		j.has(t, "k", tale(events.Acquired, g.Fence))
		d.lastsUntil(c, name, began+delayTTL+delay)
	}
}

// On real masters, whose clock bounds when a copy can have been written.
func TestDelay_OnRealMastersTheCopiesEndAfterIt(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one, two := c.daemon(), c.daemon()
	now := func() int64 {
		at := c.do(0, "TIME").([]any)
		s, _ := strconv.ParseInt(at[0].(string), 10, 64)
		us, _ := strconv.ParseInt(at[1].(string), 10, 64)
		return s*1000 + us/1000
	}
	lasts := func(what, key string, d time.Duration, write func()) {
		t.Helper()
		before := now()
		write()
		one.idle()
		two.idle()
		if ends := c.ends(0, key); ends < before+d.Milliseconds() || ends > now()+(d+late+time.Second).Milliseconds() {
			t.Errorf("%s: the copy ends %d ms after it began, want %v and what it may be late", what, ends-before, d)
		}
	}
	for key, r := range map[string]LockRequest{"plain": {}, "reader": {Mode: Readers}, "permit": {Mode: PermitsOf(2)}, "several": {More: []Key{"other"}}} {
		r.Key, r.TTL, r.Linger = Key(key), 5*time.Second, 10*time.Second
		var g Grant
		lasts(key, key, 15*time.Second, func() { g = one.get(r) })
		lasts(key+", extended through another daemon", key, 25*time.Second, func() {
			if _, err := redlocktest.Prolong(t, two.Leases, ExtendRequest{Key: r.Key, More: r.More, Token: g.Token, TTL: 5 * time.Second, Linger: 20 * time.Second}); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestDelay_AnExtensionKeepsItOrNamesIt(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ granted, named, lasts time.Duration }{
		"that of the grant":         {delay, 0, delay},
		"a longer one":              {delay, 2 * delay, 2 * delay},
		"of a lock without one":     {0, delay, delay},
		"none":                      {0, 0, 0},
		"as long as max-ttl leaves": {30 * time.Second, 0, 20 * time.Second}, // of max-ttl, 40 s are the extension's
	} {
		c := newStillClock()
		d := newPunctualDaemonWith(t, c)
		g := d.take(LockRequest{Key: "k", TTL: delayTTL, Linger: test.granted})
		d.quiet()
		c.move(delayTTL / 2)
		d.quiet()
		began, ttl := c.Now(), delayTTL
		if test.granted+ttl > 40*time.Second {
			ttl = 2 * ttl
		}
		if _, err := d.extend(ExtendRequest{Key: "k", Token: g.Token, TTL: ttl, Linger: test.named}); err != nil {
			t.Fatal(err)
		}
		d.lastsUntil(c, name, began+ttl+test.lasts)
	}
}

func TestDelay_ACopyThatIsRepairedHasItToo(t *testing.T) {
	t.Parallel()
	c := newStillClock()
	d := newPunctualDaemonWith(t, c)
	g := d.take(LockRequest{Key: "k", TTL: delayTTL, Linger: delay})
	d.quiet()
	d.engine.Pool.Embedded().At(0).Server().Del("k")
	if _, err := d.extend(ExtendRequest{Key: "k", Token: g.Token, TTL: delayTTL}); err != nil {
		t.Fatal(err)
	}
	d.quiet()
	if left := d.engine.Pool.Embedded().At(0).TTL("k"); left < delayTTL+delay-delayTTL/100-2*time.Millisecond {
		t.Errorf("the copy that came back lasts %v", left)
	}
}

func TestDelay_AReleaseDeletesAtOnce(t *testing.T) {
	t.Parallel()
	c := newStillClock()
	d := newPunctualDaemonWith(t, c)
	for _, hold := range []*HoldTerms{nil, {OnEnd: func(Grant, error, time.Duration) {}}} {
		g := d.take(LockRequest{Key: "k", TTL: delayTTL, Linger: delay, Hold: hold})
		d.quiet()
		if was, err := d.unlock(UnlockRequest{Key: "k", Token: g.Token}); !was || err != nil {
			t.Fatal(was, err)
		}
		g = d.take(LockRequest{Key: "k", TTL: delayTTL, Linger: delay})
		d.quiet()
		d.GiveBack(g) // its client has not read that it holds the lock
		d.quiet()
		if len(d.copies("k")) > 0 {
			t.Error("a grant that was given back is still there")
		}
	}
}

// A client whose connection has ended, or whose lock was lost, may be at work.
func TestDelay_TheEndOfAHoldLeavesTheDelay(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(d *pureDaemon, c *stillClock, g Grant) (from time.Duration){
		"its connection ends": func(d *pureDaemon, c *stillClock, g Grant) time.Duration {
			d.holds.Of(&g).End()
			return c.Now()
		},
		"its max-ms is over": func(d *pureDaemon, c *stillClock, g Grant) time.Duration {
			c.move(delayTTL + time.Millisecond - c.Now() + g.Began())
			eventually(d.t, "it ends", func() bool { return d.Holds() == 0 })
			return g.Began() + delayTTL
		},
	} {
		c := newStillClock()
		d := newPunctualDaemonWith(t, c)
		over := make(chan error, 1)
		terms := &HoldTerms{MaxTime: delayTTL / 4, OnEnd: func(_ Grant, reason error, _ time.Duration) { over <- reason }}
		g := d.take(LockRequest{Key: "k", TTL: delayTTL, Linger: delay, Hold: terms})
		d.quiet()
		c.move(time.Second)
		from := end(d, c, g)
		receive(t, over)
		d.lastsUntil(c, name, from+delay)
	}
}

// The holder of the token has extended the lease through another daemon, and relies on that.
func TestDelay_ALostHoldSparesCopiesOfALaterExtension(t *testing.T) {
	t.Parallel()
	c := newStillClock()
	d := newPunctualDaemonWith(t, c)
	over := make(chan error, 1)
	d.take(LockRequest{Key: "k", TTL: delayTTL, Linger: delay, Hold: &HoldTerms{
		MaxTime: delayTTL / 4, OnEnd: func(_ Grant, reason error, _ time.Duration) { over <- reason },
	}})
	d.quiet()
	d.onMasters(func(lane int) { d.engine.Pool.Embedded().At(lane).SetTTL("k", 50*time.Second) })
	c.move(delayTTL)
	receive(t, over)
	d.quiet()
	d.onMasters(func(lane int) {
		if left := d.engine.Pool.Embedded().At(lane).TTL("k"); left != 50*time.Second-delayTTL {
			t.Errorf("master %d: %v left, want %v", lane, left, 50*time.Second-delayTTL)
		}
	})
}

func TestDelay_ARenewedHoldKeepsIt(t *testing.T) {
	t.Parallel()
	c := newStillClock()
	d := newPunctualDaemonWith(t, c)
	g := d.take(LockRequest{Key: "k", TTL: delayTTL, Linger: delay, Hold: &HoldTerms{OnEnd: func(Grant, error, time.Duration) {}}})
	d.quiet()
	began := d.Counters().Extended
	c.move(delayTTL / 2)
	eventually(t, "it is renewed", func() bool { return d.Counters().Extended > began })
	renewed := c.Now()
	d.holds.Of(&g).Abandon(nil) // it runs out
	d.lastsUntil(c, "renewed", renewed+delayTTL+delay)
}
