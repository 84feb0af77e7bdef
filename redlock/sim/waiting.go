package sim

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"redlockd/redlock"
)

// waiting is a client that waits for what it cannot have at once, and may have its lease
// renewed for as long as it is there.
type waiting struct {
	baseClient
	tenure *tenure // nil = it holds nothing
}

// tenure is what such a client holds.
type tenure struct {
	keys  []string
	token redlock.Token
	owner *daemon
	hold  redlock.Hold // nil = it is not renewed
	until time.Duration
	ttl   time.Duration // what was left of it when it was granted
	mode  redlock.Kind
	fair  bool
}

func newWaiting() client { return &waiting{} }

func (c *waiting) lost(d *daemon) {
	if c.tenure != nil && c.tenure.owner == d && c.tenure.hold != nil {
		c.tenure = nil // its connection has ended, and with it what was held by it
	}
	if c.unanswered(d) {
		// A holder that extended through another daemon is still connected to its own.
		if t := c.tenure; t == nil || t.hold == nil || c.world.checker().waiting.holds[string(t.token)].ended {
			c.tenure = nil
		}
		c.soon(time.Millisecond, 20*time.Millisecond)
	}
}

func (c *waiting) act() {
	w := c.world
	if c.busy() {
		return
	}
	d := w.anyDaemon()
	if w.Scenario.Chosen {
		if d = w.daemons[c.index%len(w.daemons)]; !d.serves() {
			d = nil
		}
	}
	switch t := c.tenure; {
	case t != nil && t.until <= w.now && t.hold == nil:
		c.tenure = nil // it has run out
		c.soon(0, w.Scenario.think())
	case t != nil && t.hold != nil && d != nil && w.chance(w.Scenario.Extended):
		c.extend(d)
	case t != nil && t.owner.serves() && t.hold != nil && w.chance(2):
		c.disconnect()
	case t != nil && t.owner == d && t.fair && w.Scenario.Chosen && redlock.OwnerOf(t.token) == "" && w.chance(3):
		c.again(d)
	case t != nil && t.owner.serves() && t.hold == nil && w.chance(w.Scenario.Delays):
		c.extend(t.owner)
	case t != nil && t.owner.serves():
		c.release(t.owner)
	case t != nil && d != nil:
		c.release(d)
	case w.calm:
	case d == nil:
		c.soon(time.Millisecond, 10*time.Millisecond)
	default:
		c.request(d)
	}
}

// drawRequest draws a request from the seed.
func (c *waiting) drawRequest() (r redlock.LockRequest, keys []string, waits bool) {
	w, s := c.world, c.world.Scenario
	keys = []string{w.anyKey()}
	if other := w.anyKey(); w.chance(s.Several) && other != keys[0] {
		keys = append(keys, other)
	}
	r = redlock.LockRequest{
		Key: redlock.Key(keys[0]), TTL: w.anyTTL(),
		Mode: modeOf(w.anyMode(), permits, ""), Fair: w.chance(s.Fair),
	}
	if r.Kind() == redlock.Permits {
		keys = keys[:1]
	}
	owner := redlock.Token("")
	if n := s.Owners; n > 0 && r.Kind() == redlock.Shared && (s.Chosen || !r.Fair) && w.chance(2) { // else its ticket's number is not known
		owner, keys = redlock.Token(fmt.Sprint("owner-", w.random.IntN(n))), keys[:1]
		r.Mode = redlock.LevelsOf(owner)
	}
	_, r.More = locksOf(keys)
	if w.chance(s.Delays) {
		r.Linger = w.between(0, s.MaxTTL-r.TTL).Truncate(time.Millisecond)
	}
	if waits = !r.Fair || !w.chance(5); !waits {
		return r, keys, false
	}
	if r.Wait = s.MaxWait; w.chance(3) {
		r.Wait = w.between(2*time.Millisecond, s.MaxWait/4)
	}
	if s.Chosen && r.Wait < drainGrace { // the checker must see its ticket in the queue, see queued
		r.Wait += drainGrace
	}
	if owner == "" && r.Linger == 0 && (s.Chosen || !r.Fair && w.chance(s.Named)) {
		r.Token = redlock.Token(fmt.Sprint("waits-", w.checker().tick()))
		for _, key := range keys {
			w.checker().token(key, string(r.Token)).acquires = 2 // a wait tries again and again
		}
	}
	return r, keys, true
}

func (c *waiting) request(d *daemon) {
	w, s := c.world, c.world.Scenario
	r, keys, waits := c.drawRequest()
	before := beforeAll(w.checker(), keys, r.Kind(), redlock.LevelOwner(r.Mode))
	c.call(d, func(turn int) {
		if d.dead {
			return
		}
		record := w.checker().waitBegins(d, keys, &r, waits)
		var held *holdRecord
		if w.chance(s.Holding) {
			held = w.checker().holds(c, d, keys, &r)
		}
		done := func(g redlock.Grant, err error) {
			if d.dead {
				return
			}
			w.checker().waitEnds(record, g, err)
			if c.answered(d, turn) {
				c.onAnswer(record, held, before, g, err)
			} else if err == nil && g.Fresh {
				d.engine.GiveBack(g)
			} else if err == nil && held != nil {
				held.hold.End()
			}
		}
		if !waits {
			d.engine.Lock(nil, r, done)
			return
		}
		leave := d.engine.Wait(nil, r, done)
		if w.chance(s.Leavers) {
			after := w.between(0, r.Wait)
			if w.chance(2) { // while its ballot is under way
				after = w.between(0, 500*time.Microsecond)
			}
			w.after(after, d, func() { w.checker().leaves(record, leave) })
		}
	})
}

func (c *waiting) onAnswer(record *waitRecord, held *holdRecord, before []int64, g redlock.Grant, err error) {
	w, d := c.world, record.daemon
	if err != nil {
		if !errors.Is(err, redlock.ErrLeft) {
			w.served("a wait failed", record.keys[0], err)
		}
		c.soon(0, w.Scenario.think())
		return
	}
	until := d.clock.world(g.Until())
	if w.chance(w.Scenario.Undelivered) || until <= w.now {
		if g.Fresh {
			d.engine.GiveBack(g)
		} else if held != nil { // its connection has ended
			held.hold.End()
		}
		c.soon(0, w.Scenario.think())
		return
	}
	c.tenure = &tenure{keys: record.keys, token: g.Token, owner: d, until: until, ttl: until - w.now, mode: record.mode, fair: record.fair}
	for i, key := range record.keys {
		t := w.checker().token(key, string(g.Token))
		t.mode, t.limit = record.mode, permits
		w.checker().granted(d, key, string(g.Token), int64(g.Fence), before[i], until)
		t.delayed(until, record.delay)
		if t.hold = held; held != nil {
			c.tenure.hold = held.hold
			held.granted(string(g.Token))
		}
	}
	ttl := until - w.now
	switch {
	case w.Scenario.Prompt:
		c.soon(0, 30*time.Millisecond)
	case held != nil:
		c.soon(0, 5*ttl)
	case w.chance(4): // the client sends nothing more about it
		c.soon(ttl+time.Millisecond, ttl+50*time.Millisecond)
	default:
		c.soon(0, ttl/4)
	}
}

// again requests once more what the client holds, as after a lost answer. The request
// goes before all that wait.
func (c *waiting) again(d *daemon) {
	w, t := c.world, c.tenure
	r := redlock.LockRequest{TTL: w.Scenario.MaxTTL, Token: t.token, Mode: modeOf(t.mode, permits, ""), Fair: true}
	r.Key, r.More = locksOf(t.keys)
	before, left := beforeAll(w.checker(), t.keys, t.mode, ""), t.until-w.now
	send(&c.baseClient, d, func(done func(redlock.Grant, error)) { d.engine.Lock(nil, r, done) }, func(g redlock.Grant, err error) {
		if err != nil && w.Scenario.Reliable && left > masterTimeout && !isShutdown(err) {
			w.violate("order", t.keys[0], fmt.Sprintf("the holder repeated its request with FAIR, with %.3f ms left, and was refused: %v", ms(left), err))
			return
		}
		if err == nil {
			t.until = d.clock.world(g.Until())
			for i, key := range t.keys {
				w.checker().granted(d, key, string(t.token), int64(g.Fence), before[i], t.until)
			}
		}
		c.soon(0, max(0, t.until-w.now)/4)
	})
}

// extend prolongs all keys of the lock, and names a delay unless it has HOLD. If its daemon has
// ended the renewal meanwhile, what the reply promises is an ordinary lease.
func (c *waiting) extend(d *daemon) {
	w, t := c.world, c.tenure
	r := redlock.ExtendRequest{Token: t.token, TTL: w.anyTTL()}
	r.Key, r.More = locksOf(t.keys)
	if t.hold == nil {
		r.Linger = w.between(0, w.Scenario.MaxTTL-r.TTL).Truncate(time.Millisecond)
	}
	send(&c.baseClient, d, func(done func(redlock.Grant, error)) { d.engine.Extend(nil, r, done) }, func(g redlock.Grant, err error) {
		if h := w.checker().waiting.holds[string(t.token)]; h != nil && h.ended {
			if t.hold = nil; err != nil {
				c.tenure = nil
			}
		}
		if err == nil {
			t.until = d.clock.world(g.Until())
			for _, key := range t.keys {
				w.checker().extended(d, key, string(t.token), t.until)
				w.checker().token(key, string(t.token)).delayed(t.until, r.Linger)
			}
		}
		c.soon(0, 2*max(0, t.until-w.now))
	})
}

// disconnect ends the client's connection.
func (c *waiting) disconnect() {
	w, t := c.world, c.tenure
	for _, key := range t.keys {
		w.checker().releasing(key, string(t.token))
	}
	c.call(t.owner, func(turn int) {
		t.hold.End()
		if c.answered(t.owner, turn) {
			for _, key := range t.keys {
				w.checker().token(key, string(t.token)).releases--
			}
			w.checker().ended(string(t.token))
			c.tenure = nil
			c.soon(0, w.Scenario.think())
		}
	})
}

// release gives every key back.
func (c *waiting) release(d *daemon) {
	c.releaseAll(d, c.tenure.keys, c.tenure.token, func() { c.tenure = nil })
}

// shares reports whether two requests have a key in common.
func shares(a, b []string) bool {
	return slices.ContainsFunc(a, func(key string) bool { return slices.Contains(b, key) })
}
