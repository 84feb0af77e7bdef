package sim

import (
	"fmt"
	"strconv"
	"time"

	"redlockd/redlock"
)

// deleting is an operator's program that deletes counters with the value that the masters
// show.
type deleting struct {
	baseClient
}

func newDeleting(w *World, index int) client {
	return &deleting{baseClient{world: w, index: index}}
}

func (c *deleting) lost(d *daemon) {
	if c.daemon == d {
		c.daemon = nil
		c.pending++
		c.again()
	}
}

func (c *deleting) again() { c.world.soon(c, 10*time.Millisecond, 1500*time.Millisecond) }

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
	c.call(d, func(turn int) {
		d.engine.ReadCounter(0, redlock.Key(name), func(counter redlock.Counter, err error) {
			if !c.answered(d, turn) {
				return
			}
			if value := highest(counter); err == nil && value > 0 {
				c.remove(d, name, value)
				return
			}
			c.again()
		})
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
	c.call(d, func(turn int) {
		over := w.checker().deletion(name, value)
		d.engine.DeleteCounter(0, redlock.Key(name), value, func(fates []redlock.CounterFate, err error) {
			if !c.answered(d, turn) {
				return
			}
			over()
			w.trace.note(name, "the deletion of %s at %s ends: %v, %v", name, strconv.FormatInt(value, 10), fates, err)
			c.again()
		})
	})
}
