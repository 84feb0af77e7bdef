package sim

import (
	"fmt"
	"time"

	"redlockd/redlock"
)

// dropInClient uses the quorum as one Redis: SET NX with a value of its own or with one
// that all clients use, and what the scripts of lock libraries become. It receives yes or no and
// never a validity, so it counts the lease itself.
type dropInClient struct {
	baseClient
	habits
	key   string
	value redlock.Token // "" = holds nothing
	name  string        // of what it holds, for the checker: the value, unless others use it, too
	owner *daemon       // that granted
	until time.Duration
	left  int // things to do with the lock before it is let go
}

// habits are what such clients do.
type habits struct {
	alike   int  // one lock in so many is taken with a value that all clients use; 0 = none
	deletes int  // one lock in so many is released by DEL, which compares nothing, where that is sure to be in time
	retakes bool // a lock is also prolonged by a request that takes it anew if it is gone
}

func (h habits) newClient() client { return &dropInClient{habits: h} }

// commonValue is a value that many programs use.
const commonValue = "1"

func (c *dropInClient) lost(d *daemon) {
	if !c.unanswered(d) {
		return
	}
	c.world.checker().token(c.key, c.name).acquiring = 0
	c.abandon()
	c.soon(time.Millisecond, 20*time.Millisecond)
}

// abandon gives up a request of unknown outcome.
func (c *dropInClient) abandon() {
	if c.value != "" {
		t := c.world.checker().token(c.key, c.name)
		t.unsure, t.releases = c.world.checker().tick(), 0
		// A copy on a master that did not answer may be another try's by now. Where
		// masters may fail to answer, what is left of it ends with its expiry.
		t.foreign = t.foreign || !c.world.Scenario.Reliable
	}
	c.value = ""
}

func (c *dropInClient) act() {
	w := c.world
	if c.busy() {
		return
	}
	if w.calm && (c.value == "" || w.chance(3)) {
		return // some locks are left to expire
	}
	d := w.anyDaemon()
	if c.value != "" && c.owner != nil && c.owner.serves() && !w.chance(4) {
		d = c.owner
	}
	switch {
	case d == nil:
		c.soon(time.Millisecond, 10*time.Millisecond)
	case c.value == "":
		c.acquire(d)
	case c.value == commonValue: // a client that only compares values must not release what may be another's
		c.value = ""
		c.soon(0, w.Scenario.think())
	case c.left > 0 && !w.calm:
		c.left--
		c.use(d)
	default:
		c.release(d)
	}
}

// acquire requests a lock with a new value.
func (c *dropInClient) acquire(d *daemon) {
	w := c.world
	c.key = w.anyKey()
	serial := w.checker().tick()
	value := redlock.Token(fmt.Sprintf("value-%d-%d", c.index, serial))
	c.name = string(value)
	if w.chance(c.alike) {
		value, c.name = commonValue, fmt.Sprintf("%s, of client %d, %d", commonValue, c.index, serial)
		w.checker().token(c.key, commonValue).foreign = true // what is left of it ends with its expiry
	}
	request := redlock.LockRequest{Key: redlock.Key(c.key), TTL: c.world.anyTTL(), Token: value}
	switch {
	case c.retakes && value != commonValue && w.chance(4):
		request.Mode = &redlock.Swap{Retakes: &redlock.Retake{Held: value}}
		w.checker().token(c.key, c.name).foreign = true // the undo spares what it may have found
	case w.chance(4):
		request.Mode = &redlock.Swap{Tokens: []redlock.Token{value}} // as MSETEX does
	default:
		request.Mode = redlock.Valued
	}
	c.request(d, request)
}

// request sends an acquire, of a value that may be held already if it is a retake.
func (c *dropInClient) request(d *daemon, request redlock.LockRequest) {
	w := c.world
	key, name, sent, ttl := c.key, c.name, w.now, request.TTL
	c.value = request.Token
	before := w.checker().beforeAcquire(key, redlock.Exclusive, "")
	t := w.checker().token(key, name)
	t.until = min(t.until, w.now+counted(request.TTL)) // a retake may shorten
	w.checker().leaseRequested(key, request.Token, request.TTL)
	t.acquiring++
	swap, _ := request.Mode.(*redlock.Swap)
	w.trace.note(key, "client %d sends daemon %d an acquire of %q with %q, a retake %v, ttl %v", c.index, d.index, key, name, swap != nil && swap.Retakes != nil, request.TTL)
	c.call(d, func(turn int) {
		d.engine.Lock(nil, request, func(g redlock.Grant, err error) {
			if !d.dead {
				t.acquiring--
			}
			if !c.answered(d, turn) {
				return
			}
			c.onAnswer(d, g, err, before, sent, ttl)
		})
	})
}

// onAnswer takes the answer. One that comes later than copies outlast their lease is no yes.
func (c *dropInClient) onAnswer(d *daemon, g redlock.Grant, err error, before int64, sent, ttl time.Duration) {
	w := c.world
	gone := w.chance(w.Scenario.Undelivered)
	switch {
	case err != nil:
		w.served("an acquire failed", c.key, err)
		w.trace.note(c.key, "client %d receives from daemon %d: %v", c.index, d.index, err)
		c.abandon()
		c.soon(0, w.Scenario.think())
		return
	case gone, g.Validity() < time.Millisecond, g.Elapsed() > masterTimeout:
		if g.Fresh && g.Validity() > 0 {
			w.trace.note(c.key, "daemon %d gives %q back", d.index, c.name)
			d.engine.GiveBack(g)
		}
		c.abandon()
		c.soon(0, 10*time.Millisecond)
		return
	}
	began := w.now
	if w.chance(2) {
		began = sent
	}
	c.owner, c.until = d, began+counted(ttl)
	w.checker().granted(d, c.key, c.name, int64(g.Fence), before, c.until)
	c.left = w.random.IntN(4)
	c.hold()
}

// counted is what a careful library relies on of a lease.
func counted(ttl time.Duration) time.Duration { return ttl - ttl/100 - 2*time.Millisecond }

// hold waits for a moment, sometimes for more than all of the lease.
func (c *dropInClient) hold() {
	w := c.world
	left := max(c.until-w.now, 0)
	if w.chance(8) {
		left = left * 3 / 2
	} else if !w.chance(8) {
		left = min(left, 20*time.Millisecond)
	}
	c.soon(0, left)
}
