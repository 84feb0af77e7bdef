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

func newCounting() client { return &counting{} }

// aboveDoubles is where a counter begins in scenarios of exactness: one where not
// every second integer is a floating point number, one where one of a thousand is.
func aboveDoubles(name string) int64 {
	if name == "n0" {
		return 1<<53 + 1
	}
	return 1<<62 + 1
}

// Of counters that are mostly idle, each has its turn, and then rests for some more.
const (
	turnTime  = 3 * time.Second
	idleTurns = 5
)

func (c *counting) act() {
	w, d := c.world, c.ready()
	if d == nil {
		return
	}
	number := w.random.IntN(max(2, w.Scenario.Counters))
	if w.Scenario.Idle {
		number = number/idleTurns*idleTurns + int(w.now/turnTime)%idleTurns
	}
	name := fmt.Sprint("n", number)
	count := int64(1 + w.random.IntN(4))
	counter := w.checker().counter(name)
	request := idRequest{counter.answered, counter.deletions}
	send(&c.baseClient, d, func(done func(int64, error)) {
		draw := func(error) {
			if !d.dead {
				d.engine.NextID(nil, redlock.IDRequest{Name: redlock.Key(name), Count: count}, done)
			}
		}
		if w.Scenario.HighIDs && request.answered == 0 {
			d.engine.Reseed(0, redlock.Key(name), aboveDoubles(name), draw)
			return
		}
		draw(nil)
	}, func(first int64, err error) {
		if err != nil {
			w.served("ids were refused", name, err)
			w.trace.note(name, "client %d receives from daemon %d: %v", c.index, d.index, err)
			c.soon(0, 50*time.Millisecond)
			return
		}
		w.checker().ids(name, first, count, request)
		c.soon(0, w.Scenario.think()*time.Duration(1+w.Scenario.Counters/10))
	})
}
