package sim

// spanning is a client of two groups of masters: it locks one key, or two at once, which may
// belong to both groups.

import (
	"errors"
	"fmt"
	"time"

	"redlockd/redlock"
)

// groupScenarios have two groups of masters.
func groupScenarios() []*Scenario {
	two := func(name string, change func(*Scenario)) *Scenario {
		return base(name, func(s *Scenario) {
			s.Groups, s.Keys = true, 4
			s.Clients = []ClientGroup{{8, newSpanning}}
			change(s)
		})
	}
	return []*Scenario{
		two("groups", func(s *Scenario) {
			s.Faults = []fault{{400 * time.Millisecond, cut}, {700 * time.Millisecond, partition}, {time.Second, stop}}
			s.ClockSpread = 20 * time.Millisecond // the fences of two groups differ by as much
		}),
		two("groupdeaths", func(s *Scenario) {
			s.Faults = []fault{{500 * time.Millisecond, die}, {700 * time.Millisecond, stop}, {time.Second, cut}}
		}),
		two("groupmemory", func(s *Scenario) {
			s.Length = 16 * time.Second
			s.Faults = []fault{{300 * time.Millisecond, remember}, {300 * time.Millisecond, restart}, {300 * time.Millisecond, flushSometimes}, {2 * time.Second, cut}}
		}),
		two("maps", func(s *Scenario) { s.OtherMap = true }),
	}
}

type spanning struct {
	baseClient
	keys  []string
	token redlock.Token // "" = holds nothing
	owner *daemon       // that renews it; nil = none does
}

func newSpanning() client { return &spanning{} }

func (c *spanning) lost(d *daemon) {
	if !c.unanswered(d) {
		return
	}
	for _, key := range c.keys {
		if c.token != "" {
			t := c.world.checker().token(key, string(c.token))
			t.unsure, t.acquiring, t.releases = c.world.checker().tick(), 0, 0
		}
	}
	c.token, c.owner = "", nil
	c.soon(time.Millisecond, 20*time.Millisecond)
}

func (c *spanning) act() {
	w := c.world
	d := w.anyDaemon()
	if c.owner != nil && !c.owner.dead { // another daemon's release would look like a loss to it
		if d = c.owner; !d.serves() {
			d = nil
		}
	}
	switch {
	case c.busy(), w.calm && c.token == "":
	case d == nil:
		c.soon(time.Millisecond, 10*time.Millisecond)
	case c.token == "":
		c.acquire(d)
	default:
		c.releaseAll(d, c.keys, c.token, func() { c.token, c.owner = "", nil })
	}
}

// acquire requests one key or two. Half of the requests wait, half have a token, and half of the others
// have the lease renewed.
func (c *spanning) acquire(d *daemon) {
	w := c.world
	c.keys = []string{w.anyKey()}
	if other := w.anyKey(); other != c.keys[0] {
		c.keys = append(c.keys, other)
	}
	if w.chance(2) {
		c.token = d.token()
	}
	before := beforeAll(w.checker(), c.keys, redlock.Exclusive, "")
	for _, key := range c.keys {
		if c.token != "" {
			t := w.checker().token(key, string(c.token))
			t.acquiring, t.acquires, t.chosenAt = 1, 1, w.now
		}
	}
	r := redlock.LockRequest{TTL: w.anyTTL(), Token: c.token}
	if r.Key, r.More = locksOf(c.keys); w.chance(2) {
		r.Wait = w.between(10*time.Millisecond, 300*time.Millisecond)
		for _, key := range c.keys {
			w.checker().token(key, string(c.token)).acquires = 2 // a wait tries again and again
		}
	}
	var hold redlock.Hold
	if r.Token == "" && w.chance(2) {
		r.Hold = &redlock.HoldTerms{OnBegin: func(h redlock.Hold) { hold = h }, OnEnd: func(redlock.Grant, error, time.Duration) {}}
	}
	w.trace.note(c.keys[0], "client %d sends daemon %d an acquire of %q with %s, ttl %v, wait %v", c.index, d.index, c.keys, abbreviate(string(c.token)), r.TTL, r.Wait)
	c.call(d, func(turn int) {
		done := func(g redlock.Grant, err error) {
			switch {
			case c.answered(d, turn):
				c.onAnswer(d, g, err, before, hold != nil)
			case hold != nil && !d.dead:
				hold.End()
			}
		}
		if r.Wait > 0 {
			d.engine.Wait(nil, r, done)
			return
		}
		d.engine.Lock(nil, r, done)
	})
}

func (c *spanning) onAnswer(d *daemon, g redlock.Grant, err error, before []int64, renewed bool) {
	w := c.world
	for _, key := range c.keys {
		w.checker().token(key, string(c.token)).acquiring = 0
	}
	if err != nil {
		w.refused(err, c.keys...)
		w.trace.note(c.keys[0], "client %d receives from daemon %d: %v", c.index, d.index, err)
		for _, key := range c.keys {
			if !errors.Is(err, redlock.ErrHeld) && c.token != "" {
				w.checker().token(key, string(c.token)).unsure = w.checker().tick()
			}
		}
		c.token = ""
		c.soon(0, w.Scenario.think())
		return
	}
	if c.token = g.Token; renewed {
		c.owner = d
	}
	until := d.clock.world(g.Until())
	for i, key := range c.keys {
		w.checker().granted(d, key, string(g.Token), int64(g.Fence), before[i], until)
	}
	left := until - w.now
	if !w.chance(6) {
		left /= 20
	}
	c.soon(0, left)
}

func (c *spanning) String() string { return fmt.Sprintf("client %d, of %q", c.index, c.keys) }
