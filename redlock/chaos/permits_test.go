package chaos

// permits_test.go: at most so many holders at a time.

import (
	"context"
	"time"

	"redlockd/redlock/judge"
)

const permitsEach = 2 // of every key

type permits struct{ *clientGroup }

func newPermits(r *run) workload { return &permits{newClientGroup(r, "permit", 2)} }

func (p *permits) work(ctx context.Context, c *caller) {
	p.live(ctx, c, p.round, 20*time.Millisecond)
}

func (p *permits) round(ctx context.Context, c *client) {
	wants := wants{
		keys: []string{p.keys[c.random.IntN(len(p.keys))]}, ttl: c.draw(60*time.Millisecond, maxTTL), limit: permitsEach,
	}
	if c.often(2) {
		wants.wait = c.draw(20*time.Millisecond, maxTTL/2)
	}
	if c.often(3) {
		wants.token = p.token(c)
	}
	l := c.take(wants)
	if l == nil {
		return
	}
	c.rest(ctx, 30*time.Millisecond)
	switch {
	case c.often(4):
		c.extend(l)
		c.rest(ctx, 30*time.Millisecond)
	case c.often(4) && wants.token != "": // a repeat takes no second permit
		c.take(wants)
	case c.often(12): // dies
		c.hangUp()
		return
	}
	c.finish(l)
}

func (p *permits) verdict() (string, error) { return p.check(judge.CheckPermits) }
