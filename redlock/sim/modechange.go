package sim

import (
	"errors"
	"fmt"
	"time"

	"redlockd/redlock"
)

// modeChanger is a client that reads, becomes the writer in place and a reader again,
// all with one token. What it may rely on meanwhile: a reader that requests to be the
// writer stays a reader until a reply changes that, whatever the outcome of the
// request. A writer is at most a reader from its request to be one on, unless that is
// refused.
type modeChanger struct {
	baseClient
	key   string
	token redlock.Token // "" = holds nothing
	owner *daemon
	until time.Duration
	stays bool // it keeps a write lock as long as it can
}

func newLongWriter() client { return &modeChanger{stays: true} }

func newModeChanger() client { return &modeChanger{} }

func (c *modeChanger) lost(d *daemon) {
	if !c.unanswered(d) {
		return
	}
	t := c.record()
	t.unsure, t.acquiring, t.releases = c.world.checker().tick(), 0, 0
	c.token = ""
	c.soon(time.Millisecond, 20*time.Millisecond)
}

func (c *modeChanger) record() *tokenState { return c.world.checker().token(c.key, string(c.token)) }

func (c *modeChanger) act() {
	w := c.world
	d := w.anyDaemon()
	if c.token != "" && c.owner.serves() && !w.chance(5) {
		d = c.owner
	}
	switch {
	case c.busy():
	case c.token != "" && c.until <= w.now:
		c.token = ""
		c.soon(0, w.Scenario.think())
	case w.calm && (c.token == "" || w.chance(3)): // some locks are left to expire
	case d == nil:
		c.soon(time.Millisecond, 10*time.Millisecond)
	case c.token == "":
		c.key, c.token = w.anyKey(), redlock.Token(fmt.Sprintf("turning-%d-%d", c.index, w.checker().tick()))
		c.request(d, w.anyMode())
	case c.stays && !w.calm && c.record().mode == redlock.Exclusive:
		c.extend(d)
	case w.chance(4) || w.calm:
		c.release(d)
	case w.chance(8): // the client sends nothing more about it
		c.token = ""
		c.soon(0, 5*time.Millisecond)
	case w.chance(3):
		c.extend(d)
	case c.record().mode == redlock.Shared:
		c.request(d, redlock.Exclusive)
	default:
		c.request(d, redlock.Shared)
	}
}

// request sends an acquire for a mode, whichever the client holds.
func (c *modeChanger) request(d *daemon, mode redlock.Kind) {
	w, s, key, t := c.world, c.world.Scenario, c.key, c.record()
	held := t.granted != 0
	wrote := held && mode == redlock.Shared && t.mode == redlock.Exclusive
	if held && mode == redlock.Shared {
		t.mode = mode
	}
	before, alone := w.checker().beforeAcquire(key, mode, ""), s.Reliable && w.checker().alone(t)
	r := redlock.LockRequest{
		Key: redlock.Key(key), TTL: w.anyTTL(), Token: c.token, Mode: modeOf(mode, permits, ""),
	}
	t.changedMode = t.changedMode || held
	t.acquires, t.acquiring, t.active = t.acquires+1, t.acquiring+1, max(t.active, w.now)
	w.trace.note(key, "client %d sends daemon %d an acquire of %q by %s, mode %d, ttl %v", c.index, d.index, key, t.token, mode, r.TTL)
	c.call(d, func(turn int) {
		d.engine.Lock(nil, r, func(g redlock.Grant, err error) {
			if !d.dead {
				t.acquiring--
				t.active = max(t.active, w.now)
			}
			if !c.answered(d, turn) {
				return
			}
			if err != nil {
				w.trace.note(key, "client %d receives from daemon %d: %v", c.index, d.index, err)
				if wrote && errors.Is(err, redlock.ErrHeld) {
					w.checker().stillWriter(t)
				}
				c.refused(d, t, held, alone, err)
				return
			}
			t.mode, c.owner = mode, d
			c.until = max(c.until, d.clock.world(d.clock.Now()+g.Validity()))
			w.checker().granted(d, key, t.token, int64(g.Fence), before, d.clock.world(d.clock.Now()+g.Validity()))
			t.active = c.until
			c.rest()
		})
		if held && mode == redlock.Exclusive && w.chance(s.Impatient) {
			w.after(w.between(500*time.Microsecond, 6*time.Millisecond), nil, func() { c.giveUp(turn) })
		}
	})
}

// giveUp requests the write lock from another daemon at once, while the first one is at it.
func (c *modeChanger) giveUp(turn int) {
	w, d := c.world, c.world.anyDaemon()
	if turn != c.pending || c.daemon == nil || w.calm || d == nil {
		return
	}
	w.trace.note(c.key, "client %d gives up waiting for daemon %d", c.index, c.daemon.index)
	c.daemon = nil
	c.pending++
	c.record().unsure = w.checker().tick()
	c.request(d, redlock.Exclusive)
}

// refused: what the client held before it still holds. alone: no other client used the
// key when the request was sent.
func (c *modeChanger) refused(d *daemon, t *tokenState, held, alone bool, err error) {
	w := c.world
	w.served("an acquire failed", t.key, err)
	if alone && w.checker().alone(t) {
		w.violate("liveness", t.key, fmt.Sprintf("%s was refused by daemon %d although no other client used the key: %v", t.token, d.index, err))
	}
	if !errors.Is(err, redlock.ErrHeld) {
		t.unsure = w.checker().tick()
	}
	if !held {
		c.token = ""
		c.soon(0, w.Scenario.think())
		return
	}
	c.rest()
}

func (c *modeChanger) rest() { c.soon(0, max(0, c.until-c.world.now)/4) }

func (c *modeChanger) extend(d *daemon) {
	w, key, t := c.world, c.key, c.record()
	r := redlock.ExtendRequest{Key: redlock.Key(key), Token: c.token, TTL: w.anyTTL()}
	send(&c.baseClient, d, func(done func(redlock.Grant, error)) { d.engine.Extend(nil, r, done) }, func(g redlock.Grant, err error) {
		w.served("an extension failed", key, err)
		if err == nil {
			until := d.clock.world(g.Until())
			w.checker().extended(d, key, t.token, until)
			c.until = max(c.until, until)
			t.active = c.until
		}
		c.rest()
	})
}

func (c *modeChanger) release(d *daemon) {
	w, key, t := c.world, c.key, c.record()
	t.shared = t.shared || d != c.owner
	release := w.checker().releasing(key, t.token)
	send(&c.baseClient, d, func(done func(bool, error)) {
		d.engine.Unlock(nil, redlock.UnlockRequest{Key: redlock.Key(key), Token: redlock.Token(t.token)}, done)
	}, func(released bool, err error) {
		w.served("a release failed", key, err)
		w.checker().released(release, released, err)
		t.active = w.now
		c.token = ""
		c.soon(0, w.Scenario.think())
	})
}

// alone reports whether no other token can have left anything at the key: all are
// done with it for longer than a copy outlives its lease. What a writer that was
// a reader has may last longer, by 1024 ms for each time, see acquire.lua.
func (j *checker) alone(t *tokenState) bool {
	for _, other := range j.tokens {
		const outlives = masterTimeout + 100*time.Millisecond
		if other.key == t.key && other != t && (other.acquiring > 0 || other.active+outlives > j.world.now || other.changedMode && other.released == 0) {
			return false
		}
	}
	return true
}
