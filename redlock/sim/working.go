package sim

import (
	"fmt"
	"time"

	"redlockd/redlock"
)

// working is one of many workers that compete for pieces of work.
type working struct {
	baseClient
	key     string
	attempt redlock.Work // under way, if its token is not ""
}

func newWorking() client { return &working{} }

func (c *working) lost(d *daemon) {
	if c.unanswered(d) {
		c.attempt = redlock.Work{}
		c.soon(time.Millisecond, 20*time.Millisecond)
	}
}

// attempts is how many a piece of work may take.
const attempts = 4

func (c *working) act() {
	w, d := c.world, c.ready()
	switch {
	case d == nil:
	case c.attempt.Token == "":
		c.try(d)
	case w.chance(4): // dies: the attempt times out
		c.attempt = redlock.Work{}
		c.soon(0, 20*time.Millisecond)
	case w.chance(3):
		c.extend(d)
	default:
		c.end(d, w.chance(3))
	}
}

// pieces of work follow one another, so that there is always some to be done.
func (c *working) piece() string {
	w := c.world
	return fmt.Sprintf("w%d-%d", w.random.IntN(max(3, w.Scenario.Pieces)), w.now/(w.Scenario.MaxKeep/2))
}

func (c *working) try(d *daemon) {
	w := c.world
	key := c.piece()
	r := w.checker().work(key)
	before, finished := r.fence, r.done != 0
	request := redlock.WorkRequest{Key: redlock.Key(key), Timeout: w.anyTTL(), Max: attempts, Keep: w.Scenario.MaxKeep}
	if w.chance(3) {
		request.Wait = w.between(time.Millisecond, w.Scenario.MaxTTL)
	}
	c.call(d, func(turn int) {
		d.engine.Work(nil, request, func(a redlock.Work, err error) {
			if !c.answered(d, turn) {
				if err == nil && a.State == redlock.WorkAcquired && !d.dead {
					d.engine.WorkGiveBack(a)
				}
				return
			}
			if err == nil && a.State == redlock.WorkDone {
				r.isDone(w, key, a.Attempt, finished, a.Result)
			}
			if err != nil || a.State != redlock.WorkAcquired {
				w.served("work was refused", key, err)
				w.trace.note(key, "client %d receives from daemon %d: %v %v", c.index, d.index, a.State, err)
				c.soon(0, 30*time.Millisecond)
				return
			}
			until := d.clock.world(a.Until())
			w.checker().started(key, string(a.Token), a.Attempt, attempts, int64(a.Fence), before, finished, until)
			c.key, c.attempt = key, a
			c.hold(until)
		})
	})
}

func (c *working) hold(until time.Duration) {
	w := c.world
	left := until - w.now
	switch {
	case w.chance(5):
		left *= 2
	case w.Scenario.Overdue:
		left *= 4
	}
	c.soon(0, left)
}

func (c *working) extend(d *daemon) {
	w := c.world
	key, token := c.key, c.attempt.Token
	request := redlock.WorkEndRequest{Key: redlock.Key(key), Token: token, Timeout: w.anyTTL()}
	send(&c.baseClient, d, func(done func(redlock.Work, error)) { d.engine.WorkExtend(nil, request, done) }, func(a redlock.Work, err error) {
		if err != nil {
			w.trace.note(key, "client %d receives from daemon %d: extend: %v", c.index, d.index, err)
			c.soon(0, 20*time.Millisecond)
			return
		}
		until := d.clock.world(a.Until())
		w.checker().prolonged(key, string(token), until)
		c.hold(until)
	})
}

// end reports that the work is done, or that the attempt is given up.
func (c *working) end(d *daemon, failed bool) {
	w := c.world
	key, a := c.key, c.attempt
	newest := w.checker().work(key).highest
	w.checker().ending(key, string(a.Token))
	result := resultOf(a.Attempt)
	request := redlock.WorkEndRequest{Key: redlock.Key(key), Token: a.Token, Result: &result}
	end := d.engine.WorkDone
	if failed {
		end, request.Result = d.engine.WorkFail, nil
	}
	send(&c.baseClient, d, func(done func(bool, error)) { end(nil, request, done) }, func(so bool, err error) {
		w.trace.note(key, "client %d receives from daemon %d: end of %d, failed %v: %v %v", c.index, d.index, a.Attempt, failed, so, err)
		if err == nil && so {
			w.checker().done(key, a.Attempt, newest, !failed)
		}
		c.attempt = redlock.Work{}
		c.soon(0, w.Scenario.think())
	})
}

// resultOf is what an attempt leaves when it is done.
func resultOf(attempt int64) string { return fmt.Sprint("by attempt ", attempt) }
