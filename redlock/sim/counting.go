package sim

import (
	"fmt"
	"time"

	"redlockd/redlock"
)

// counting is a client of ids.
type counting struct {
	baseClient
}

func newCounting(w *World, index int) client {
	return &counting{baseClient: baseClient{world: w, index: index}}
}

func (c *counting) lost(d *daemon) {
	if c.daemon == d {
		c.daemon = nil
		c.pending++
		c.world.soon(c, time.Millisecond, 20*time.Millisecond)
	}
}

// aboveDoubles is where a counter begins in scenarios of exactness: one where not
// every second integer is a floating point number, one where one of a thousand is.
func aboveDoubles(name string) int64 {
	if name == "n0" {
		return 1<<53 + 1
	}
	return 1<<62 + 1
}

func (c *counting) act() {
	w := c.world
	if c.busy() || w.calm {
		return
	}
	d := w.anyDaemon()
	if d == nil {
		w.soon(c, time.Millisecond, 10*time.Millisecond)
		return
	}
	name := fmt.Sprint("n", w.random.IntN(max(2, w.Scenario.Counters)))
	count := int64(1 + w.random.IntN(4))
	request := w.checker().counter(name).request()
	c.call(d, func(turn int) {
		if w.Scenario.HighIDs && request.answered == 0 {
			d.engine.Reseed(0, redlock.Key(name), aboveDoubles(name), func(error) { c.next(d, name, count, request, turn) })
			return
		}
		c.next(d, name, count, request, turn)
	})
}

func (c *counting) next(d *daemon, name string, count int64, request idRequest, turn int) {
	w := c.world
	if d.dead {
		return
	}
	d.engine.NextID(nil, redlock.IDRequest{Name: redlock.Key(name), Count: count}, func(first int64, err error) {
		if !c.answered(d, turn) {
			return
		}
		if err != nil {
			w.served("ids were refused", name, err)
			w.trace.note(name, "client %d receives from daemon %d: %v", c.index, d.index, err)
			w.soon(c, 0, 50*time.Millisecond)
			return
		}
		w.checker().ids(name, first, count, request)
		w.soon(c, 0, w.Scenario.think()*time.Duration(1+w.Scenario.Counters/10))
	})
}
