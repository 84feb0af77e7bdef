package sim

import (
	"fmt"
	"time"

	"redlockd/redlock"
)

// meddling is a client that sends DEL, EXPIRE, SET XX and SET IFEQ for a key of any
// holder. No client relies on that key: the checks are that everything is answered and
// that nothing is left for good.
type meddling struct {
	baseClient
	last redlock.Token
}

func newMeddling() client { return &meddling{} }

const meddled = "meddled"

func (c *meddling) act() {
	w, d := c.world, c.ready()
	if d == nil {
		return
	}
	value := redlock.Token(fmt.Sprintf("meddled-%d", w.checker().tick()))
	w.checker().token(meddled, string(value)).foreign = true
	ttl := w.anyTTL()
	what := w.random.IntN(6)
	send(&c.baseClient, d, func(done func(bool, error)) { c.change(d, what, value, ttl, done) }, func(done bool, err error) {
		w.checker().checked++
		w.served("a change failed", meddled, err)
		if done {
			c.last = value
		}
		c.soon(0, w.Scenario.think())
	})
}

func (c *meddling) change(d *daemon, what int, value redlock.Token, ttl time.Duration, answer func(bool, error)) {
	r := redlock.WriteRequest{Key: meddled, TTL: ttl, Value: value}
	switch what {
	case 0:
		r.Effect = redlock.WriteDeletes
	case 1:
		r.Effect = redlock.WriteExpires
	case 2:
		r.Effect = redlock.WriteReplaces
	case 3:
		r.Effect, r.Equal = redlock.WriteReplaces, c.last
	case 4:
		d.engine.View(nil, 0, meddled, func(v redlock.View, err error) {
			if limit := c.world.Scenario.MaxTTL + leeway; err == nil && v.Kind != "none" && v.Left > limit {
				c.world.violate("views", meddled, fmt.Sprintf("%q is seen for another %.3f ms, at most %.3f ms were requested", v.Value, ms(v.Left), ms(limit)))
			}
			answer(false, err)
		})
		return
	default:
		request := redlock.LockRequest{Key: meddled, TTL: ttl, Token: value, Mode: redlock.Valued}
		d.engine.Lock(nil, request, func(_ redlock.Grant, err error) { answer(err == nil, err) })
		return
	}
	d.engine.Write(nil, r, answer)
}
