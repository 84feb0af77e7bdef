package sim

import (
	"fmt"
	"strconv"
	"time"

	"redlockd/pool"
)

// foreign is a Redlock client of the ordinary kind, on the same masters and past
// all daemons: SET NX PX on every master, a quorum, what is left of the time; a script
// that deletes what is its own. Locks of the product must exclude it.
type foreign struct {
	baseClient
	key, token string
	start      time.Duration
	ttl        time.Duration
	open       int
	yes        int
	held       bool
	waiting    bool
}

func newForeign() client { return &foreign{} }

func (c *foreign) busy() bool   { return c.waiting }
func (c *foreign) lost(*daemon) {}

const deleteOwn = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`

// sendToAll sends one command to all masters, each on a connection of its own.
func (c *foreign) sendToAll(words []string, onAnswer func(yes bool)) {
	w := c.world
	for _, s := range w.servers {
		answered := false
		once := func(yes bool) {
			if !answered {
				answered = true
				onAnswer(yes)
			}
		}
		w.after(50*time.Millisecond, nil, func() { once(false) }) // its own time-out
		if !s.up {
			continue
		}
		f := &flight{link: s.accept(nil), commands: []pool.Command{{Args: words}}, sent: w.now}
		f.listener = func(replies []pool.Reply) {
			r := replies[0]
			once(r.Err == nil && (r.Kind == pool.ReplyString || r.Int == 1))
		}
		w.after(w.Scenario.latency(w), nil, f.arrive)
	}
}

func (c *foreign) act() {
	w := c.world
	switch {
	case c.waiting:
	case c.held:
		c.release()
	case w.calm:
	default:
		c.acquire()
	}
}

func (c *foreign) acquire() {
	w := c.world
	c.key = fmt.Sprint("k", w.random.IntN(w.Scenario.Keys))
	c.token = fmt.Sprintf("foreign-%d-%d", c.index, w.checker().tick())
	w.checker().token(c.key, c.token).foreign = true
	c.start, c.yes, c.open, c.waiting = w.now, 0, len(w.servers), true
	c.ttl = w.anyTTL()
	ttl := strconv.FormatInt(c.ttl.Milliseconds(), 10)
	c.sendToAll([]string{"SET", c.key, c.token, "NX", "PX", ttl}, func(yes bool) {
		if c.open--; yes {
			c.yes++
		}
		if c.open == 0 {
			c.waiting = false
			c.decide()
		}
	})
}

func (c *foreign) decide() {
	w := c.world
	until := c.start + c.ttl - c.ttl/100 - 2*time.Millisecond
	if c.yes < pool.Quorum(len(w.servers)) || until <= w.now {
		c.release()
		return
	}
	c.held = true
	w.checker().granted(nil, c.key, c.token, 0, 0, until)
	c.soon(0, until-w.now)
}

func (c *foreign) release() {
	w := c.world
	if c.held {
		w.checker().releasing(c.key, c.token)
		c.held = false
	}
	c.open, c.waiting = len(w.servers), true
	c.sendToAll([]string{"EVAL", deleteOwn, "1", c.key, c.token}, func(bool) {
		if c.open--; c.open == 0 {
			c.waiting = false
			c.soon(0, 20*time.Millisecond)
		}
	})
}
