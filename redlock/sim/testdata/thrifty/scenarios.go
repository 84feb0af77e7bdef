// The scenarios of a study, see redlock/THRIFTY.md: what the others hardly have, locks that are
// free when they are requested.

package sim

import (
	"errors"
	"fmt"
	"time"

	"redlockd/pool"
	"redlockd/redlock"
)

// thriftyScenarios have clients that hold a lock for a while, and extend it each third of its time.
func thriftyScenarios() (all []*Scenario) {
	add := func(name string, keys int, low, high time.Duration, change func(*Scenario)) {
		s := base(name, func(s *Scenario) {
			s.Undelivered, s.Split, s.Stall, s.Slow, s.MinTTL, s.MaxTTL, s.Keys = 0, 0, 0, 0, 2*time.Second, 2*time.Second, keys
			s.Clients = []ClientGroup{{12, func() client { return &borrower{low: low, high: high} }}}
			change(s)
		})
		five := *s
		five.Name, five.Masters = s.Name+"-5", 5
		s.Name += "-3"
		all = append(all, s, &five)
	}
	const ms = time.Millisecond
	add("own-short", 0, 0, 2*ms, func(*Scenario) {})
	add("own-mid", 0, 15*ms, 25*ms, func(*Scenario) {})
	add("own-long", 0, 100*ms, 300*ms, func(*Scenario) {})
	add("own-slow", 0, 0, 2*ms, func(s *Scenario) { s.Slow = 60 })
	add("own-stops", 0, 0, 2*ms, func(*Scenario) {})
	add("one-key", 1, 0, 2*ms, func(*Scenario) {})
	add("few-keys", 4, 0, 30*ms, func(*Scenario) {})
	for _, after := range []time.Duration{8 * ms, 30 * ms} {
		add(fmt.Sprint("struck-", after), 0, after, 80*ms, func(s *Scenario) {
			s.Clients, s.Daemons, s.Length = []ClientGroup{{1, func() client { return &borrower{low: after, high: 80 * ms, struck: true} }}}, 1, 240*time.Second
		})
	}
	return all
}

// stopInTurn stops one master after another for 300 ms, each 700 ms.
func stopInTurn(w *World) {
	for at := time.Duration(0); at < w.Scenario.Length; at += 700 * time.Millisecond {
		s := w.servers[int(at/(700*time.Millisecond))%len(w.servers)]
		w.after(at, nil, func() {
			if s.stopped = !w.calm; s.stopped {
				w.after(300*time.Millisecond, nil, s.resume)
			}
		})
	}
}

// borrower locks a key, of its own with Keys 0, holds it and releases it.
type borrower struct {
	baseClient
	low, high time.Duration
	key       string
	token     redlock.Token
	owner     *daemon
	since     time.Duration
	holds     time.Duration
	turns     int
	struck    bool // a master dies and forgets low after the grant; the lock is extended then, and at high
}

func (c *borrower) lost(d *daemon) {
	if c.unanswered(d) {
		c.token = ""
		c.soon(time.Millisecond, 20*time.Millisecond)
	}
}

func (c *borrower) act() {
	w := c.world
	switch d := w.anyDaemon(); {
	case c.busy(), w.calm && c.token == "":
	case d == nil:
		c.soon(time.Millisecond, 10*time.Millisecond)
	case c.token == "":
		c.lock(d)
	case w.calm || w.now-c.since >= c.holds:
		c.unlock(c.owner)
	default:
		c.extend(c.owner)
	}
}

func (c *borrower) lock(d *daemon) {
	w := c.world
	if c.key = fmt.Sprint("own", c.index, "-", w.random.IntN(1000)); w.Scenario.Keys > 0 {
		c.key = w.anyKey()
	}
	before := w.checker().beforeAcquire(c.key, redlock.Exclusive, "")
	c.call(d, func(turn int) {
		d.locker.Lock(nil, redlock.LockRequest{Key: redlock.Key(c.key), TTL: w.Scenario.MaxTTL}, func(g redlock.Grant, err error) {
			if !c.answered(d, turn) {
				return
			}
			if err != nil {
				c.soon(0, w.Scenario.think())
				return
			}
			c.token, c.owner, c.since, c.holds = g.Token, d, w.now, w.between(c.low, c.high)
			if c.struck {
				c.holds = 2 * c.high
				w.after(c.low, nil, func() { w.anyServer().crash(0) })
			}
			w.checker().granted(d, c.key, string(g.Token), int64(g.Fence), before, d.clock.world(g.Until()))
			c.next()
		})
	})
}

// next comes when the lock is to be released, or after a third of the lease.
func (c *borrower) next() {
	w := c.world
	if at := []time.Duration{c.low + 4*time.Millisecond, c.high, c.holds}; c.struck && c.turns < len(at) {
		w.after(c.since+at[c.turns]-w.now, nil, c.act)
		c.turns++
		return
	}
	w.after(min(c.since+c.holds-w.now, w.Scenario.MaxTTL/3), nil, c.act)
}

func (c *borrower) extend(d *daemon) {
	w := c.world
	c.call(d, func(turn int) {
		d.locker.Extend(nil, redlock.ExtendRequest{Key: redlock.Key(c.key), Token: c.token, TTL: w.Scenario.MaxTTL}, func(g redlock.Grant, err error) {
			if !c.answered(d, turn) {
				return
			}
			if errors.Is(err, redlock.ErrNotHeld) {
				c.holds = 0
			}
			if c.struck {
				outcome := "extended"
				if err != nil {
					outcome = "not extended"
				}
				pool.Counts[fmt.Sprintf("%s at turn %d", outcome, c.turns)]++
			}
			if err == nil {
				w.checker().extended(d, c.key, string(c.token), d.clock.world(g.Until()))
			}
			c.next()
		})
	})
}

func (c *borrower) unlock(d *daemon) {
	w := c.world
	release := w.checker().releasing(c.key, string(c.token))
	c.call(d, func(turn int) {
		d.locker.Unlock(nil, redlock.UnlockRequest{Key: redlock.Key(c.key), Token: c.token}, func(released bool, err error) {
			if !c.answered(d, turn) {
				return
			}
			w.checker().released(release, released, err)
			if c.token, c.turns = "", 0; c.struck {
				w.after(w.Scenario.age()+time.Second, nil, c.act)
				return
			}
			c.soon(0, w.Scenario.think())
		})
	})
}
