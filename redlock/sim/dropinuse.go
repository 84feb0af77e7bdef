package sim

import (
	"errors"
	"fmt"
	"time"

	"redlockd/redlock"
)

// use reads, prolongs, retakes or hands over a lock that is held.
func (c *dropInClient) use(d *daemon) {
	w := c.world
	if d != c.owner {
		w.checker().token(c.key, c.name).shared = true
	}
	switch w.random.IntN(6) {
	case 0:
		c.view(d, func(redlock.View) { c.hold() })
	case 1:
		c.view(d, func(v redlock.View) { c.add(d, v) })
	case 2:
		c.handOver(d)
	case 3:
		if c.retakes {
			request := redlock.LockRequest{Key: redlock.Key(c.key), TTL: c.world.anyTTL(), Token: c.value}
			if w.chance(2) { // else DLOCK with the value as TOKEN
				request.Script = retake.call(c.key, c.value, request.TTL)
			}
			c.request(d, request)
			return
		}
		fallthrough
	case 4:
		c.prolong(d)
	default:
		c.renew(d)
	}
}

// view is GET and PTTL.
func (c *dropInClient) view(d *daemon, then func(redlock.View)) {
	w := c.world
	key, name, value := c.key, c.name, c.value
	send(&c.baseClient, d, func(done func(redlock.View, error)) { d.engine.View(nil, 0, redlock.Key(key), done) }, func(v redlock.View, err error) {
		if err != nil {
			w.served("a view failed", key, err)
			c.hold()
			return
		}
		w.checker().viewed(key, name, value, v)
		then(v)
	})
}

// renew gives the lock another lease, longer or shorter, by a script or by SET IFEQ. A client that
// requested a shorter one relies on no more, unless it receives that nothing has changed.
func (c *dropInClient) renew(d *daemon) {
	ttl := c.world.anyTTL()
	t := c.world.checker().token(c.key, c.name)
	before, until := t.until, min(t.until, c.world.now+counted(ttl))
	t.until, c.until = until, min(c.until, until)
	c.world.checker().leaseRequested(c.key, c.value, ttl)
	unchanged := func() {
		if t.until == until {
			t.until = before
		}
	}
	if c.world.chance(2) {
		c.extend(d, redlock.ExtendRequest{Key: redlock.Key(c.key), Token: c.value, TTL: ttl, Exact: true}, unchanged)
		return
	}
	c.run(d, c.world.anyOf(renewals), redlock.ScriptExtends, ttl, c.world.now+counted(ttl), unchanged)
}

// prolong is DEXTEND, from clients that are written for several masters.
func (c *dropInClient) prolong(d *daemon) {
	request := redlock.ExtendRequest{Key: redlock.Key(c.key), Token: c.value, TTL: c.world.anyTTL()}
	c.world.checker().leaseRequested(c.key, c.value, request.TTL)
	c.extend(d, request, func() {})
}

// extend sends an extension; unchanged is called if the old validity stands.
func (c *dropInClient) extend(d *daemon, request redlock.ExtendRequest, unchanged func()) {
	w := c.world
	key, name := c.key, c.name
	send(&c.baseClient, d, func(done func(redlock.Grant, error)) { d.engine.Extend(nil, request, done) }, func(g redlock.Grant, err error) {
		switch {
		case errors.Is(err, redlock.ErrNotHeld):
			c.left = 0
		case err != nil:
			w.served("an extension failed", key, err)
			unchanged()
		default:
			until := d.clock.world(g.Until())
			c.until = max(c.until, until)
			w.checker().extended(d, key, name, until)
		}
		c.hold()
	})
}

// add makes what is left of the lease longer, unless it would be too long then.
func (c *dropInClient) add(d *daemon, v redlock.View) {
	more := c.world.anyTTL()
	if v.Kind != "string" || v.Left+more > c.world.Scenario.MaxTTL {
		c.hold()
		return
	}
	c.world.checker().token(c.key, c.name).added += more // each master adds to what it has then
	c.run(d, addition, redlock.ScriptAdds, more, max(c.until, c.world.now)+counted(more), func() {})
}

// run sends a script; unchanged is called if the old validity stands.
func (c *dropInClient) run(d *daemon, p *libraryScript, effect redlock.ScriptEffect, ttl, until time.Duration, unchanged func()) {
	w := c.world
	key, name, value := c.key, c.name, c.value
	request := redlock.ScriptRequest{Script: p.call(key, value, ttl), Effect: effect, Keys: []redlock.Key{redlock.Key(key)}, Token: value, TTL: ttl}
	send(&c.baseClient, d, func(done func(redlock.ScriptOutcome, error)) { d.engine.RunScript(nil, request, done) }, func(o redlock.ScriptOutcome, err error) {
		w.trace.note(key, "client %d extends %q by a script: %v %v", c.index, name, o.Yes, err)
		switch {
		case err != nil:
			w.served("an extension failed", key, err)
			unchanged()
		case o.Yes:
			c.until = max(c.until, until)
			w.checker().extended(d, key, name, until)
		default:
			c.left = 0
		}
		c.hold()
	})
}

// handOver is SET IFEQ: another value takes the place of one's own.
func (c *dropInClient) handOver(d *daemon) {
	w := c.world
	key, old, next := c.key, c.name, fmt.Sprintf("heir-%d-%d", c.index, w.checker().tick())
	request := redlock.WriteRequest{
		Key: redlock.Key(key), Effect: redlock.WriteReplaces, Equal: c.value, Value: redlock.Token(next), TTL: c.world.anyTTL(),
	}
	end := w.now + counted(request.TTL)
	release := w.checker().releasing(key, old)
	heir := w.checker().token(key, next)
	heir.foreign = !w.Scenario.Reliable
	w.checker().token(key, old).foreign = !w.Scenario.Reliable // a master that was not reached keeps it
	w.checker().leaseRequested(key, request.Value, request.TTL)
	before := w.checker().beforeAcquire(key, redlock.Exclusive, "")
	send(&c.baseClient, d, func(done func(bool, error)) { d.engine.Write(nil, request, done) }, func(done bool, err error) {
		w.served("a hand-over failed", key, err)
		w.checker().released(release, done, err)
		if err != nil || !done {
			heir.unsure = w.checker().tick()
			c.value = ""
			c.soon(0, w.Scenario.think())
			return
		}
		c.value, c.name, c.until = request.Value, next, end
		w.checker().granted(d, key, next, 0, before, end)
		c.hold()
	})
}

// release releases the lock in one of three ways.
func (c *dropInClient) release(d *daemon) {
	w := c.world
	key, name, value := c.key, c.name, c.value
	// DEL compares nothing: it is for a client that is sure to be in time.
	sure := w.Scenario.Reliable && c.until-w.now > 200*time.Millisecond
	if d != c.owner {
		w.checker().token(key, name).shared = true
	}
	release := w.checker().releasing(key, name)
	way := w.random.IntN(2)
	send(&c.baseClient, d, func(done func(bool, error)) {
		switch {
		case sure && w.chance(c.deletes):
			d.engine.Write(nil, redlock.WriteRequest{Key: redlock.Key(key), Effect: redlock.WriteDeletes}, done)
		case way == 0:
			d.engine.Unlock(nil, redlock.UnlockRequest{Key: redlock.Key(key), Token: value}, done)
		default:
			request := redlock.ScriptRequest{Script: w.anyOf(drops).call(key, value, 0), Keys: []redlock.Key{redlock.Key(key)}, Token: value}
			d.engine.RunScript(nil, request, func(o redlock.ScriptOutcome, err error) { done(o.Yes, err) })
		}
	}, func(released bool, err error) {
		w.served("a release failed", key, err)
		w.checker().released(release, released, err)
		c.value = ""
		c.soon(0, w.Scenario.think())
	})
}
