package sim

import (
	"errors"
	"fmt"
	"time"

	"redlockd/redlock"
)

// served reports an error in a reliable scenario, which has no fault that allows it.
func (w *World) served(what, key string, err error) {
	w.refused(err, key)
	if err != nil && w.Scenario.Reliable && !errors.Is(err, redlock.ErrHeld) && !errors.Is(err, redlock.ErrNotHeld) && !isShutdown(err) {
		w.violate("liveness", key, what+" without any fault: "+err.Error())
	}
}

// locksOf are the keys of a request.
func locksOf(keys []string) (key redlock.Key, more []redlock.Key) {
	for _, one := range keys[1:] {
		more = append(more, redlock.Key(one))
	}
	return redlock.Key(keys[0]), more
}

// beforeAll is what the checker notes of keys before one request for all of them.
func beforeAll(j *checker, keys []string, mode redlock.Kind, owner redlock.Token) (before []int64) {
	for _, key := range keys {
		before = append(before, j.beforeAcquire(key, mode, owner))
	}
	return before
}

// releaseAll releases keys that one token holds. over is called when all are answered.
func (s *baseClient) releaseAll(d *daemon, keys []string, token redlock.Token, over func()) {
	w, open := s.world, len(keys)
	all := make([]releaseCall, len(keys))
	for i, key := range keys {
		t := w.checker().token(key, string(token))
		t.shared = t.shared || t.daemon != d
		all[i] = w.checker().releasing(key, string(token))
	}
	s.call(d, func(turn int) {
		for i, key := range keys {
			d.engine.Unlock(nil, redlock.UnlockRequest{Key: redlock.Key(key), Token: token}, func(released bool, err error) {
				if d.dead {
					return
				}
				w.refused(err, key)
				w.checker().released(all[i], released, err)
				if open--; open == 0 && s.answered(d, turn) {
					over()
					s.soon(0, w.Scenario.think())
				}
			})
		}
	})
}

// locking is a client of locks.
type locking struct {
	baseClient
	key   string
	token redlock.Token // "" = holds nothing
	owner *daemon       // that granted
	mode  redlock.Kind
	named bool          // the token is its own choice
	ttl   time.Duration // that it requests
	delay time.Duration // DELAY
	again int           // tries with a token whose outcome is unknown
	left  int           // things to do with the lock before it is released
	clings
}

func newLocking() client { return &locking{} }

func (c *locking) lost(d *daemon) {
	if !c.unanswered(d) {
		return
	}
	if c.token != "" {
		t := c.world.checker().token(c.key, string(c.token))
		t.unsure, t.acquiring, t.releases = c.world.checker().tick(), 0, 0
	}
	c.token = ""
	c.soon(time.Millisecond, 20*time.Millisecond)
}

func (c *locking) act() {
	w := c.world
	if c.busy() {
		return
	}
	if w.calm && (c.token == "" || w.chance(3)) {
		return // some locks are left to expire
	}
	d := w.anyDaemon()
	if c.token != "" && c.owner != nil && c.owner.serves() && !w.chance(4) {
		d = c.owner
	}
	switch {
	case d == nil:
		c.soon(time.Millisecond, 10*time.Millisecond)
	case c.token == "":
		c.key = c.anyKey()
		c.acquire(d, "")
	case c.left > 0 && !w.calm:
		c.left--
		c.use(d)
	case w.chance(20) && !w.calm: // forgets its lock
		c.token = ""
		c.soon(0, 5*time.Millisecond)
	default:
		c.unlock(d)
	}
}

func (c *locking) anyKey() string {
	w := c.world
	if w.Scenario.Private {
		return fmt.Sprintf("k%d-%d", c.index, w.random.IntN(w.Scenario.Keys))
	}
	return fmt.Sprint("k", w.random.IntN(w.Scenario.Keys))
}

// permits is how many there are of a key that is held by permits.
const permits = 2

// anyMode draws a mode: keys are used in all modes at once, unless a scenario has one.
// modeOf is the mode of requests of this kind: with a limit of permits, or for levels of an owner.
func modeOf(kind redlock.Kind, limit int, owner redlock.Token) redlock.Mode {
	switch {
	case owner != "":
		return redlock.LevelsOf(owner)
	case kind == redlock.Shared:
		return redlock.Readers
	case kind == redlock.Permits:
		return redlock.PermitsOf(limit)
	}
	return nil
}

func (w *World) anyMode() redlock.Kind {
	some := w.Scenario.Modes
	if len(some) == 0 {
		return redlock.Exclusive
	}
	return some[w.random.IntN(len(some))]
}

// acquire requests the key, with a token of its own if it is to be named.
func (c *locking) acquire(d *daemon, token redlock.Token) {
	w := c.world
	fresh := token == ""
	if c.named = token != ""; !c.named && w.chance(w.Scenario.Named) {
		c.named, token = true, redlock.Token(fmt.Sprintf("named-%d-%d", c.index, w.checker().tick()))
	}
	if fresh || w.Scenario.Restless {
		c.ttl = c.world.anyTTL()
	}
	if fresh {
		c.mode = w.anyMode()
	}
	request := redlock.LockRequest{Key: redlock.Key(c.key), TTL: c.ttl, Token: token}
	c.delay = 0
	if !c.named && w.chance(w.Scenario.Delays) {
		c.delay = w.between(0, w.Scenario.MaxTTL-c.ttl).Truncate(time.Millisecond)
	}
	request.Linger = c.delay
	owner := redlock.Token("")
	if n := w.Scenario.Owners; n > 0 && c.mode == redlock.Shared && token == "" && !w.chance(5) {
		owner = redlock.Token(fmt.Sprint("owner-", w.random.IntN(n)))
	}
	request.Mode = redlock.HeldFor(modeOf(c.mode, permits, owner), w.Scenario.MaxHold)
	before := w.checker().beforeAcquire(c.key, c.mode, owner)
	w.trace.note(c.key, "client %d sends daemon %d an acquire of %q with %q, ttl %v, delay %v", c.index, d.index, c.key, token, request.TTL, request.Linger)
	if c.named {
		c.token = token
		t := w.checker().token(c.key, string(token))
		t.acquiring++
		t.acquires++
		t.chosenAt = w.now
	}
	key := c.key
	c.call(d, func(turn int) {
		d.engine.Lock(nil, request, func(g redlock.Grant, err error) {
			if c.named && !d.dead && token != "" {
				t := w.checker().token(key, string(token))
				if t.acquiring--; err == nil && t.regretted {
					w.violate("release", key, fmt.Sprintf("daemon %d gave %s the lock after it had answered its release", d.index, token))
				}
			}
			if !c.answered(d, turn) {
				c.undeliverable(d, g, err)
				return
			}
			c.onAnswer(d, g, err, before)
		})
		if token != "" && w.chance(w.Scenario.Impatient) {
			w.after(w.between(500*time.Microsecond, 6*time.Millisecond), nil, func() { c.giveUp(turn) })
		}
	})
}

// undeliverable is what the daemon does with a grant whose client has gone.
func (c *locking) undeliverable(d *daemon, g redlock.Grant, err error) {
	if c.world.Scenario.Impatient > 0 && !c.world.Scenario.GivesBack {
		return // the daemon does not notice that the client has gone
	}
	if err == nil && !d.dead && g.Fresh {
		c.world.trace.note(string(g.Key), "daemon %d gives %s back: its client has gone", d.index, abbreviate(string(g.Token)))
		d.engine.GiveBack(g)
	}
}

// giveUp stops waiting and repeats the request at another daemon at once, with the same
// token.
func (c *locking) giveUp(turn int) {
	w := c.world
	if turn != c.pending || c.daemon == nil || w.calm {
		return
	}
	w.trace.note(c.key, "client %d gives up waiting for daemon %d", c.index, c.daemon.index)
	d := w.anyDaemon()
	if w.Scenario.Loyal {
		d = c.daemon
	}
	c.daemon = nil
	c.pending++
	w.checker().token(c.key, string(c.token)).unsure = w.checker().tick()
	if d != nil && d.serves() {
		if w.Scenario.Regrets && w.chance(2) {
			c.regret(d)
			return
		}
		c.acquire(d, c.token)
		return
	}
	c.token = ""
	c.soon(0, 10*time.Millisecond)
}

// regret releases what the client does not wait for any more: once that is answered,
// the token has nothing.
func (c *locking) regret(d *daemon) {
	w, t := c.world, c.world.checker().token(c.key, string(c.token))
	w.trace.note(c.key, "client %d releases by daemon %d what it did not wait for", c.index, d.index)
	release := w.checker().releasing(t.key, t.token)
	release.sole = false
	send(&c.baseClient, d, func(done func(bool, error)) {
		d.engine.Unlock(nil, redlock.UnlockRequest{Key: redlock.Key(t.key), Token: redlock.Token(t.token)}, done)
	}, func(released bool, err error) {
		t.regretted = err == nil
		w.checker().released(release, released, err)
		c.token = ""
		c.soon(0, w.Scenario.think())
	})
}

func (c *locking) onAnswer(d *daemon, g redlock.Grant, err error, before int64) {
	w := c.world
	if err != nil {
		w.served("an acquire failed", c.key, err)
		c.failed(d, err)
		return
	}
	if w.chance(w.Scenario.Undelivered) {
		w.checker().token(c.key, string(g.Token)).unsure = w.checker().tick()
		c.undeliverable(d, g, nil)
		c.token = ""
		c.soon(0, 10*time.Millisecond)
		return
	}
	c.token, c.owner, c.again = g.Token, d, 0
	until := d.clock.world(g.Until())
	t := w.checker().token(c.key, string(g.Token))
	t.mode, t.limit = c.mode, permits
	w.checker().granted(d, c.key, string(g.Token), int64(g.Fence), before, until)
	t.delayed(until, c.delay)
	if c.left = w.random.IntN(3); w.Scenario.MaxHold > 0 {
		c.left = 40
	}
	c.clings.note(&c.baseClient, c.key, g.Token, until)
	c.hold(until)
}

// hold waits for a part of the validity, sometimes for more than all of it.
func (c *locking) hold(until time.Duration) {
	w := c.world
	left := until - w.now
	switch {
	case w.chance(6):
		left = left * 3 / 2
	case !w.chance(4):
		left /= 20
	}
	c.soon(0, left)
}

func (c *locking) failed(d *daemon, err error) {
	w := c.world
	w.trace.note(c.key, "client %d receives from daemon %d: %v", c.index, d.index, err)
	undecided := !errors.Is(err, redlock.ErrHeld)
	if c.named && undecided {
		w.checker().token(c.key, string(c.token)).unsure = w.checker().tick()
		if c.again++; c.again < 4 && !w.calm {
			if other := w.anyDaemon(); other != nil { // a retry of the same request
				c.acquire(other, c.token)
				return
			}
		}
	}
	c.token, c.again = "", 0
	c.soon(0, w.Scenario.think())
}

// use prolongs a lock that is held, or requests it again.
func (c *locking) use(d *daemon) {
	w := c.world
	if c.named && w.chance(3) {
		c.acquire(d, c.token)
		return
	}
	key, token, ttl := c.key, c.token, c.world.anyTTL()
	w.checker().token(key, string(token)).shared = w.checker().token(key, string(token)).shared || d != c.owner
	request := redlock.ExtendRequest{Key: redlock.Key(key), Token: token, TTL: ttl}
	if !c.named && w.chance(w.Scenario.Delays) {
		request.Linger = w.between(0, w.Scenario.MaxTTL-ttl).Truncate(time.Millisecond)
	}
	send(&c.baseClient, d, func(done func(redlock.Grant, error)) { d.engine.Extend(nil, request, done) }, func(g redlock.Grant, err error) {
		if err != nil {
			w.served("an extension failed", key, err)
			w.trace.note(key, "extension of %s: %v", abbreviate(string(token)), err)
			if errors.Is(err, redlock.ErrNotHeld) && w.chance(2) {
				c.unlock(d)
				return
			}
			c.soon(0, 10*time.Millisecond)
			return
		}
		until := d.clock.world(g.Until())
		w.checker().extended(d, key, string(token), until)
		c.clings.note(&c.baseClient, key, token, until)
		delay := request.Linger
		if d == c.owner { // another daemon does not know of the delay of the grant
			delay = max(delay, min(c.delay, w.Scenario.MaxTTL-ttl))
		}
		w.checker().token(key, string(token)).delayed(until, delay)
		c.hold(until)
	})
}

func (c *locking) unlock(d *daemon) {
	w := c.world
	key, token := c.key, c.token
	if d != c.owner {
		w.checker().token(key, string(token)).shared = true
	}
	keep := time.Duration(0)
	if !c.named && w.chance(w.Scenario.Keeps) {
		keep = w.between(time.Millisecond, w.Scenario.MaxTTL).Truncate(time.Millisecond)
	}
	release := w.checker().releasing(key, string(token))
	release.keep, release.at = keep, w.now
	send(&c.baseClient, d, func(done func(bool, error)) {
		d.engine.Unlock(nil, redlock.UnlockRequest{Key: redlock.Key(key), Token: token, Linger: keep}, done)
	}, func(released bool, err error) {
		w.served("a release failed", key, err)
		w.checker().released(release, released, err)
		c.token = ""
		c.soon(0, w.Scenario.think())
	})
}
