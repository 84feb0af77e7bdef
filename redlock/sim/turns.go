package sim

import (
	"errors"
	"fmt"
	"time"

	"redlockd/redlock"
)

// This file contains clients that keep one key busy, and others that want it, too. What the checker
// requires of the product:
//
//	turns      a client that tries at least every maxPause is granted the lock within Scenario.Turn,
//	           while holders release

// maxPause is the longest pause between two tries of a client.
const maxPause = 100 * time.Millisecond

// keeper always waits for the key in the first daemon, and holds it for some milliseconds.
type keeper struct{ waiting }

func newKeeper() client { return &keeper{} }

func (c *keeper) act() {
	w := c.world
	d := w.daemons[0]
	switch {
	case c.busy():
	case c.tenure != nil:
		c.release(d)
	case !w.calm:
		c.request(d)
	}
}

// trier wants the key in its own way: it polls or waits, with FAIR or without, in the daemon of the keepers or
// in another one.
type trier struct {
	waiting
	polls, fair bool
	at          int // its daemon
	tries       turnClock
}

func newTrier() client { return &trier{at: -1} }

func (c *trier) act() {
	w := c.world
	if c.at < 0 {
		c.at, c.polls, c.fair = w.random.IntN(len(w.daemons)), w.chance(2), w.chance(2)
	}
	d := w.daemons[c.at]
	switch {
	case c.busy():
	case c.tenure != nil:
		c.release(d)
	case !w.calm:
		c.try(d)
	}
}

func (c *trier) try(d *daemon) {
	w := c.world
	c.tries.note(&c.baseClient, false)
	keys := []string{w.anyKey()}
	r := redlock.LockRequest{Key: redlock.Key(keys[0]), TTL: w.Scenario.MaxTTL, Requester: &redlock.Requester{ID: int64(c.index)}}
	request := func(done func(redlock.Grant, error)) { d.engine.Lock(nil, r, done) }
	if !c.polls {
		r.Wait, r.Fair = w.Scenario.MaxWait, c.fair
		request = func(done func(redlock.Grant, error)) { d.engine.Wait(nil, r, done) }
	}
	before := beforeAll(w.checker(), keys, r.Kind(), "")
	var record *waitRecord
	send(&c.baseClient, d, func(done func(redlock.Grant, error)) {
		record = w.checker().waitBegins(d, keys, &r, !c.polls) // what comes first is what arrives first
		request(func(g redlock.Grant, err error) {
			w.checker().waitEnds(record, g, err)
			done(g, err)
		})
	}, func(g redlock.Grant, err error) {
		switch {
		case isShutdown(err):
		case err != nil:
			if !errors.Is(err, redlock.ErrHeld) {
				w.served("a try failed", keys[0], err)
			}
			c.soon(maxPause*9/10, maxPause)
		default:
			c.tries.note(&c.baseClient, true)
			c.onAnswer(record, nil, before, g, nil)
		}
	})
}

// turnClock is since when a client has tried without a grant; 0 = it has not.
type turnClock time.Duration

// note notes a try of a client, or a grant.
func (t *turnClock) note(c *baseClient, granted bool) {
	w := c.world
	since := time.Duration(*t)
	if limit := w.Scenario.Turn; since != 0 && limit != 0 && w.now-since > limit && !w.calm {
		w.violate("turns", "k0", fmt.Sprintf("%v has tried for %.3f ms, and others were granted the lock", c, ms(w.now-since)))
	}
	switch {
	case granted:
		*t = 0
	case *t == 0:
		*t = turnClock(w.now)
	}
}

// turnScenarios have clients that keep a key busy.
func turnScenarios() []*Scenario {
	busy := func(name string, limit time.Duration, other func() client) *Scenario {
		return waitBase(name, func(s *Scenario) {
			s.Keys, s.Daemons, s.Named, s.Prompt, s.Announcements, s.Length = 1, 2, 0, true, true, 14*time.Second
			s.MinTTL, s.MaxTTL, s.MaxWait, s.Turn = 400*time.Millisecond, 800*time.Millisecond, 8*time.Second, limit
			s.Clients = []ClientGroup{{4, newKeeper}, {1, other}}
			s.Slow, s.Stall, s.Split, s.Undelivered, s.Reliable, s.Asleep = 0, 0, 0, 0, true, 2*time.Second
		})
	}
	return []*Scenario{
		busy("turns", 2*time.Second, newTrier),
		busy("windows", 6*time.Second, newStraight),
	}
}

// straight is a foreign client that does not hold the lock for long.
type straight struct {
	foreign
	tries turnClock
}

func newStraight() client { return &straight{} }

func (c *straight) act() {
	w := c.world
	switch {
	case c.waiting:
	case c.held:
		c.tries.note(&c.baseClient, true)
		c.release()
	case !w.calm:
		c.tries.note(&c.baseClient, false)
		c.acquire()
	}
}
