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
			switch {
			case w.chance(2):
				request.Mode = &redlock.Swap{Retakes: &redlock.Retake{Held: c.value}}
			case w.chance(3):
				c.swap(d)
				return
			} // else DLOCK with the value as TOKEN
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

// renew gives the lock another lease, longer or shorter, as scripts and SET IFEQ do. A client that
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
	c.extend(d, redlock.ExtendRequest{Key: redlock.Key(c.key), Token: c.value, TTL: ttl, Exact: true}, unchanged)
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

// add makes what was promised of the lease longer, unless it would be too long then. With the least of
// what the masters have it could become shorter.
func (c *dropInClient) add(d *daemon, v redlock.View) {
	more := c.world.anyTTL()
	if v.Value != c.value || v.Longest+more > c.world.Scenario.MaxTTL {
		c.hold()
		return
	}
	c.world.checker().token(c.key, c.name).added += more
	c.extend(d, redlock.ExtendRequest{Key: redlock.Key(c.key), Token: c.value, TTL: v.Longest + more, Exact: true, Seen: &v}, func() {})
}

var errReplaced = errors.New("another value takes its place")

// swap takes the lock with a new value, from the value that it has or if it is free.
func (c *dropInClient) swap(d *daemon) {
	w := c.world
	old, next := c.value, fmt.Sprintf("next-%d-%d", c.index, w.checker().tick())
	w.checker().released(w.checker().releasing(c.key, c.name), false, errReplaced)
	w.checker().leaseRequested(c.key, redlock.Token(next), w.checker().token(c.key, c.name).atMost()) // a copy may keep its end
	w.checker().token(c.key, c.name).foreign = true                                                   // a master that was not reached keeps it
	w.checker().token(c.key, next).foreign = true                                                     // the undo spares what it may have found
	c.name = next
	c.request(d, redlock.LockRequest{Key: redlock.Key(c.key), TTL: w.anyTTL(), Token: redlock.Token(next), Mode: &redlock.Swap{Retakes: &redlock.Retake{Held: old}}})
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

// release releases the lock in one of two ways.
func (c *dropInClient) release(d *daemon) {
	w := c.world
	key, name, value := c.key, c.name, c.value
	// DEL compares nothing: it is for a client that is sure to be in time.
	sure := w.Scenario.Reliable && c.until-w.now > 200*time.Millisecond
	if d != c.owner {
		w.checker().token(key, name).shared = true
	}
	release := w.checker().releasing(key, name)
	send(&c.baseClient, d, func(done func(bool, error)) {
		switch {
		case sure && w.chance(c.deletes):
			d.engine.Write(nil, redlock.WriteRequest{Key: redlock.Key(key), Effect: redlock.WriteDeletes}, done)
		default:
			d.engine.Unlock(nil, redlock.UnlockRequest{Key: redlock.Key(key), Token: value}, done)
		}
	}, func(released bool, err error) {
		w.served("a release failed", key, err)
		w.checker().released(release, released, err)
		c.value = ""
		c.soon(0, w.Scenario.think())
	})
}
