package sim

import (
	"fmt"
	"time"

	"redlockd/redlock"
)

// deleting is an operator's program that deletes counters with the value that the masters
// show.
type deleting struct {
	baseClient
}

func newDeleting() client { return &deleting{} }

func (c *deleting) lost(d *daemon) {
	if c.unanswered(d) {
		c.again()
	}
}

func (c *deleting) again() { c.soon(10*time.Millisecond, 1500*time.Millisecond) }

func (c *deleting) act() {
	w := c.world
	if c.busy() || w.calm {
		return
	}
	d := w.anyDaemon()
	if d == nil {
		c.again()
		return
	}
	name := fmt.Sprint("n", w.random.IntN(max(2, w.Scenario.Counters)))
	send(&c.baseClient, d, func(done func(redlock.Counter, error)) { d.engine.ReadCounter(0, redlock.Key(name), done) }, func(counter redlock.Counter, err error) {
		if value := highest(counter); err == nil && value > 0 {
			c.remove(d, name, value)
			return
		}
		c.again()
	})
}

func highest(counter redlock.Counter) (value int64) {
	for _, m := range counter.Masters {
		value = max(value, m.Value)
	}
	return value
}

func (c *deleting) remove(d *daemon, name string, value int64) {
	w := c.world
	var over func()
	send(&c.baseClient, d, func(done func([]redlock.CounterFate, error)) {
		over = w.checker().deletion(name, value)
		d.engine.DeleteCounter(0, redlock.Key(name), value, done)
	}, func(fates []redlock.CounterFate, err error) {
		over()
		w.trace.note(name, "the deletion of %s at %d ends: %v, %v", name, value, fates, err)
		c.again()
	})
}
