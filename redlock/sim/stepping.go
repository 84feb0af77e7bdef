package sim

import (
	"errors"
	"fmt"
	"time"

	"redlockd/redlock"
)

// stepper is a client whose token requests what it has just been given once more, in every mode and
// of every kind, with the same ttl: both requests may write copies that end alike. Often most masters
// stand still just then. What it relies on is what a modeChanger does.
type stepper struct {
	modeChanger
	ttl  time.Duration
	also string // a further key that it was given
}

func newStepper() client { return &stepper{} }

func (c *stepper) lost(d *daemon) {
	c.also = ""
	c.modeChanger.lost(d)
}

func (c *stepper) act() {
	w := c.world
	d := w.anyDaemon()
	switch {
	case c.busy():
	case c.token != "" && c.until <= w.now:
		c.token, c.also = "", ""
		c.soon(0, w.Scenario.think())
	case w.calm && (c.token == "" || w.chance(3)): // some locks are left to expire
	case d == nil:
		c.soon(time.Millisecond, 10*time.Millisecond)
	case c.token == "":
		c.key, c.token = w.anyKey(), redlock.Token(fmt.Sprintf("stepping-%d-%d", c.index, w.checker().tick()))
		c.ttl = w.anyTTL()
		c.step(d, w.anyMode(), func(*redlock.LockRequest) {})
	case c.also != "":
		key := c.also
		c.also = ""
		c.releaseAll(d, []string{key}, c.token, func() {})
	case w.calm || w.chance(4):
		c.release(d)
	case w.chance(3):
		c.soon(0, (c.until-w.now)/2)
	default:
		mode, change := c.other()
		if w.chance(2) {
			stopMost(w)
		}
		c.step(d, mode, change)
	}
}

// other draws a further request.
func (c *stepper) other() (mode redlock.Kind, change func(*redlock.LockRequest)) {
	w := c.world
	mode = []redlock.Kind{redlock.Exclusive, redlock.Shared, redlock.Permits}[w.random.IntN(3)]
	valued, several, fair := mode == redlock.Exclusive && w.chance(3), mode != redlock.Permits && w.chance(3), w.chance(4)
	return mode, func(r *redlock.LockRequest) {
		switch {
		case valued:
			r.Mode = redlock.Valued
		case several:
			for key := w.anyKey(); len(r.More) == 0; key = w.anyKey() {
				if key != c.key {
					r.More = []redlock.Key{redlock.Key(key)}
				}
			}
		}
		r.Fair = fair && !valued
	}
}

// step sends a request; until its end the token has what it had.
func (c *stepper) step(d *daemon, mode redlock.Kind, change func(*redlock.LockRequest)) {
	w, key, t := c.world, c.key, c.record()
	r := redlock.LockRequest{Key: redlock.Key(key), TTL: c.ttl, Token: c.token}
	limit := 0
	if mode == redlock.Permits {
		limit = permits + w.random.IntN(2)
	}
	r.Mode = modeOf(mode, limit, "")
	change(&r)
	keys := []string{key}
	for _, more := range r.More {
		keys = append(keys, string(more))
	}
	held := t.granted != 0 && t.until > w.now
	down := held && mode == redlock.Shared && t.mode == redlock.Exclusive && len(keys) == 1
	if down {
		t.mode = mode
	}
	before := beforeAll(w.checker(), keys, mode, "")
	t.changedMode = t.changedMode || held
	for _, one := range keys {
		u := w.checker().token(one, string(c.token))
		u.acquires, u.acquiring, u.active = u.acquires+1, u.acquiring+1, max(u.active, w.now)
	}
	w.trace.note(key, "client %d sends daemon %d an acquire of %q by %s, mode %d, ttl %v, %+v", c.index, d.index, keys, t.token, mode, r.TTL, r)
	c.call(d, func(turn int) {
		d.engine.Lock(nil, r, func(g redlock.Grant, err error) {
			if !d.dead {
				for _, one := range keys {
					w.checker().token(one, t.token).acquiring--
				}
				t.active = max(t.active, w.now)
			}
			if !c.answered(d, turn) {
				return
			}
			if err != nil {
				w.trace.note(key, "client %d receives from daemon %d: %v", c.index, d.index, err)
				if down && errors.Is(err, redlock.ErrHeld) {
					w.checker().stillWriter(t)
				}
				c.refused(d, t, held, false, err)
				return
			}
			until := d.clock.world(d.clock.Now() + g.Validity())
			for i, one := range keys {
				u := w.checker().token(one, t.token)
				u.mode, u.limit = mode, limit
				w.checker().granted(d, one, t.token, int64(g.Fence), before[i], until)
				u.active = until
			}
			if len(keys) > 1 {
				c.also = keys[1]
			}
			c.owner, c.until = d, max(c.until, until)
			c.soon(0, 2*time.Millisecond)
		})
	})
}

// stopMost stops a quorum of the masters for about the time that some others may take the key in.
func stopMost(w *World) {
	for range w.Scenario.Masters/2 + 1 {
		stop(w)
	}
}
