package sim

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"redlockd/redlock"
)

// cycleClient takes one lock after another and waits for each. Others do so
// in other orders, and sooner or later they wait for one another. It
// always uses the same daemon, which identifies it by its connection.
//
// What the checker requires of the product: a client that receives DEADLOCK waits in a
// cycle, and no cycle of waits through one daemon lasts.
type cycleClient struct {
	baseClient
	held  []*cycleLock
	wait  *waitRecord // nil = it does not wait
	token redlock.Token

	waits []*waitRecord // for the judgement of cycles over several daemons, also those that are over
	locks []*cycleLock
}

// cycleLock is one lock of such a client.
type cycleLock struct {
	key         string
	token       redlock.Token
	mode        redlock.Kind
	since       time.Duration // it was granted
	ended       time.Duration // its client has sent the release; 0 = not
	until       time.Duration
	blocksUntil time.Duration // it may block others until then: a reader that becomes the writer for a shorter time stays the reader
}

var _ redlock.Owner = (*cycleClient)(nil)

func newCycleClient() client { return &cycleClient{} }

// Holds are the leases that only this client will release.
func (c *cycleClient) Holds(runs func(redlock.Lease) bool) (list []redlock.Lease) {
	for _, one := range c.held {
		if lease := (redlock.Lease{Key: redlock.Key(one.key), Token: one.token}); runs(lease) {
			list = append(list, lease)
		}
	}
	return list
}

func (c *cycleClient) home() *daemon { return c.world.daemons[c.index%len(c.world.daemons)] }

func (c *cycleClient) lost(d *daemon) {
	if c.home() == d { // its connection has ended; what it held runs out
		if c.wait != nil {
			c.wait.ended = c.world.now + edgesOfTheDead
		}
		c.held, c.wait, c.daemon = nil, nil, nil
		c.pending++
		c.soon(time.Millisecond, 20*time.Millisecond)
	}
}

// maxHeldLocks is how many locks such a client holds.
const maxHeldLocks = 3

func (c *cycleClient) act() {
	w, d := c.world, c.home()
	c.held = slices.DeleteFunc(c.held, func(one *cycleLock) bool { return one.until <= w.now })
	switch {
	case c.busy():
	case !d.serves():
		c.soon(time.Millisecond, 10*time.Millisecond)
	case len(c.held) > 0 && (w.calm || len(c.held) == maxHeldLocks || w.chance(6)):
		c.release(d)
	case !w.calm:
		c.request(d)
	}
}

// drawRequest draws a request: for a key that the client has not, or to write what it reads.
func (c *cycleClient) drawRequest() (r redlock.LockRequest, own *cycleLock) {
	w, s := c.world, c.world.Scenario
	r = redlock.LockRequest{
		Key: redlock.Key(w.anyKey()), TTL: w.anyTTL(),
		Mode: modeOf(w.anyMode(), permits, ""), Wait: s.MaxWait, Owner: c, Fair: w.chance(s.Fair),
	}
	for _, one := range c.held {
		if one.key == string(r.Key) {
			own = one
		}
	}
	if own != nil {
		r.Mode, r.Token, r.Fair = nil, own.token, false
	} else if r.Kind() == redlock.Shared {
		if r.Fair = false; w.chance(2) {
			r.Token = redlock.Token(fmt.Sprint("cycles-", w.checker().tick()))
		}
	}
	return r, own
}

func (c *cycleClient) request(d *daemon) {
	w := c.world
	r, own := c.drawRequest()
	if own != nil && own.mode == redlock.Exclusive {
		c.soon(0, 5*time.Millisecond)
		return
	}
	key := string(r.Key)
	before := w.checker().beforeAcquire(key, r.Kind(), "")
	if r.Token != "" {
		w.checker().token(key, string(r.Token)).acquires = 2 // a wait tries again and again
	}
	c.call(d, func(turn int) {
		if d.dead {
			return
		}
		record := w.checker().waitBegins(d, []string{key}, &r, true)
		c.wait, c.token = record, r.Token
		c.waits = append(c.waits, record)
		d.engine.Wait(nil, r, func(g redlock.Grant, err error) {
			if d.dead {
				return
			}
			var deadlock *redlock.Deadlock
			if errors.As(err, &deadlock) {
				w.checker().deadlock(c, deadlock.Keys)
			}
			w.checker().waitEnds(record, g, err)
			c.wait = nil
			w.forgetEndedCycles()
			if c.answered(d, turn) {
				c.onAnswer(d, key, own, r.Kind(), before, g, err)
			} else if err == nil && g.Fresh {
				d.engine.GiveBack(g)
			}
		})
	})
}

func (c *cycleClient) onAnswer(d *daemon, key string, own *cycleLock, mode redlock.Kind, before int64, g redlock.Grant, err error) {
	w := c.world
	var deadlock *redlock.Deadlock
	switch {
	case errors.As(err, &deadlock) && w.Scenario.FarCycles && w.chance(2): // it may do something else before
		c.soon(0, 600*time.Millisecond)
		return
	case errors.As(err, &deadlock):
		c.release(d) // one of the cycle has to
		return
	case err != nil:
		w.served("a wait failed", key, err)
		c.soon(0, w.Scenario.think())
		return
	}
	until := d.clock.world(g.Until())
	if until > w.now {
		t := w.checker().token(key, string(g.Token))
		t.mode = mode
		w.checker().granted(d, key, string(g.Token), int64(g.Fence), before, until)
		if own != nil {
			own.blocksUntil = max(until, own.blocksUntil)
			if own.mode == mode {
				until = max(until, own.until)
			}
			own.mode, own.until = mode, until
		} else {
			own = &cycleLock{key: key, token: g.Token, mode: mode, since: w.now, until: until, blocksUntil: until}
			c.held, c.locks = append(c.held, own), append(c.locks, own)
		}
	}
	c.soon(0, 20*time.Millisecond)
}

// release gives everything back.
func (c *cycleClient) release(d *daemon) {
	w, all := c.world, c.held
	if len(all) == 0 {
		c.soon(0, w.Scenario.think())
		return
	}
	open := len(all)
	c.call(d, func(turn int) {
		c.held = nil
		w.forgetEndedCycles()
		for _, one := range all {
			one.ended = w.now
			release := w.checker().releasing(one.key, string(one.token))
			d.engine.Unlock(nil, redlock.UnlockRequest{Key: redlock.Key(one.key), Token: one.token}, func(released bool, err error) {
				if d.dead {
					return
				}
				w.checker().released(release, released, err)
				if open--; open == 0 && c.answered(d, turn) {
					c.soon(0, w.Scenario.think())
				}
			})
		}
	})
}

// waitsFor reports whether a client waits for what another one holds, both by the
// same daemon.
func (c *cycleClient) waitsFor(other *cycleClient) bool {
	if c.wait == nil || c.wait.over || c.home() != other.home() {
		return false
	}
	return slices.ContainsFunc(other.held, func(one *cycleLock) bool {
		return one.until > c.world.now && c.blockedBy(one, -orderMargin)
	})
}

// orderMargin is how much later than another a client must have sent its request, to be
// certainly behind it in their daemon's wait queue: longer than a daemon sleeps, between
// the ballot for the one and the arrival of the other.
const orderMargin = 800 * time.Millisecond

// blockedBy reports whether a lease blocks a client: itself, or one of its daemon
// that has sent its request before it, by a margin.
func (c *cycleClient) blockedBy(one *cycleLock, margin time.Duration) bool {
	return one.key == c.wait.keys[0] && slices.ContainsFunc(c.world.cycleClients(), func(first *cycleClient) bool {
		r := first.wait
		return r != nil && !r.over && first.home() == c.home() && r.keys[0] == one.key && first.token != one.token &&
			(first == c || (r.fair == c.wait.fair || r.fair && c.wait.token == "") && r.began < c.wait.began+margin) &&
			(one.mode == redlock.Exclusive || r.mode == redlock.Exclusive)
	})
}

// deadlock is called when a client receives that it waits in a cycle. The keys are
// those that the clients of the cycle wait for, from its own around to the one it holds.
func (j *checker) deadlock(c *cycleClient, keys []redlock.Key) {
	j.checked++
	w := j.world
	w.trace.note(c.wait.keys[0], "client %d receives DEADLOCK over %q", c.index, keys)
	at := []*cycleClient{c}
	for _, key := range keys {
		var next []*cycleClient
		for _, one := range at {
			for _, other := range w.cycleClients() {
				if one.wait != nil && one.wait.keys[0] == string(key) && one.home() == other.home() &&
					slices.ContainsFunc(other.held, func(k *cycleLock) bool {
						return k.key == string(key) && k.blocksUntil > w.now && one.blockedBy(k, orderMargin)
					}) {
					next = append(next, other)
				}
			}
		}
		at = next
	}
	if !slices.Contains(at, c) && !c.wasInCycle(keys) {
		w.violate("cycles", c.wait.keys[0], fmt.Sprintf("client %d received DEADLOCK, its wait closes a cycle over %q, and there is none", c.index, keys))
	}
}

const (
	// edgesOfTheDead is how long the masters may show a wait whose client or daemon has gone.
	edgesOfTheDead = 1200 * time.Millisecond
	// searchTime is what a search for a cycle over several daemons takes at most, and the
	// deletion of edges behind it among masters that all answer.
	searchTime = 200*time.Millisecond + masterTimeout
	// beyondLease is how much longer than a lease its copies last.
	beyondLease = 2 * masterTimeout
)

// wasInCycle reports whether at one moment since a search may have begun all waits of a cycle were
// under way, each for the key that the next client holds, whatever the daemon. keys are those
// that the clients wait for; the last is held by this one.
func (c *cycleClient) wasInCycle(keys []redlock.Key) bool {
	var from func(at *cycleClient, keys []redlock.Key, begin, end time.Duration) bool
	from = func(at *cycleClient, keys []redlock.Key, begin, end time.Duration) bool {
		if len(keys) == 0 {
			return at == c
		}
		for _, r := range at.waits {
			b, e := max(begin, r.began), end
			if r.ended > 0 {
				e = min(e, r.ended)
			}
			if r.keys[0] != string(keys[0]) || b > e {
				continue
			}
			for _, other := range c.world.cycleClients() {
				for _, one := range other.locks {
					b, e := max(b, one.since), min(e, one.blocksUntil+beyondLease)
					if one.ended > 0 {
						e = min(e, one.ended+beyondLease)
					}
					blocks := one.token != r.token && (one.mode == redlock.Exclusive || r.mode == redlock.Exclusive)
					if one.key == string(keys[0]) && blocks && b <= e && from(other, keys[1:], b, e) {
						return true
					}
				}
			}
		}
		return false
	}
	begin := c.world.now - searchTime
	if !c.world.Scenario.Reliable { // the answer may have waited until the edges had expired
		begin -= edgesOfTheDead
	}
	return from(c, keys, begin, c.world.now)
}

// waitsDirectlyFor reports whether a client waits for what another one holds, through whatever
// daemon, and not only behind other waiters.
func (c *cycleClient) waitsDirectlyFor(other *cycleClient) bool {
	return c.wait != nil && !c.wait.over && slices.ContainsFunc(other.held, func(one *cycleLock) bool {
		return one.key == c.wait.keys[0] && one.token != c.token && one.until > c.world.now &&
			(one.mode == redlock.Exclusive || c.wait.mode == redlock.Exclusive)
	})
}

func (w *World) cycleClients() (all []*cycleClient) {
	for _, c := range w.clients {
		if one, is := c.(*cycleClient); is {
			all = append(all, one)
		}
	}
	return all
}

// inCycle reports whether a client's wait leads back to itself.
func (c *cycleClient) inCycle(all []*cycleClient) bool {
	waitsFor := (*cycleClient).waitsFor
	if c.world.Scenario.FarCycles {
		waitsFor = (*cycleClient).waitsDirectlyFor
	}
	visited := map[*cycleClient]bool{}
	for queue := []*cycleClient{c}; len(queue) > 0; queue = queue[1:] {
		for _, other := range all {
			switch {
			case !waitsFor(queue[0], other):
			case other == c:
				return true
			case !visited[other]:
				visited[other] = true
				queue = append(queue, other)
			}
		}
	}
	return false
}

// checkCycles checks at intervals whether a client waits in a cycle for longer than a
// ballot takes, or over several daemons for longer than their search takes.
func (j *checker) checkCycles() {
	w, longest := j.world, j.world.Scenario.MaxCycle
	const every = 20 * time.Millisecond
	all := w.cycleClients()
	for _, c := range all {
		d := c.home()
		began, known := j.inCycles[c]
		switch {
		case d.dead || d.resumed+every > w.now || !c.inCycle(all):
			delete(j.inCycles, c)
		case !known:
			j.inCycles[c] = w.now
		case w.now-began > longest:
			w.violate("cycles", c.wait.keys[0], fmt.Sprintf("client %d has waited in a cycle in daemon %d for %.3f ms, and no client of it received DEADLOCK", c.index, d.index, ms(w.now-began)))
		}
	}
	w.after(every, nil, j.checkCycles)
}

// forgetEndedCycles is called when a wait or a lock has ended: a client may be in another cycle at
// the next check.
func (w *World) forgetEndedCycles() {
	all := w.cycleClients()
	maps.DeleteFunc(w.checker().inCycles, func(c *cycleClient, _ time.Duration) bool { return !c.inCycle(all) })
}
