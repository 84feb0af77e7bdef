package chaos

// several_test.go: three of twelve keys, all or none, each time in another order,
// beside clients of one of them. Some hold them as long as their connection.

import (
	"context"
	"time"

	"redlockd/redlock/checker"
)

type several struct{ *clientGroup }

func newSeveral(r *run) workload { return &several{newClientGroup(r, "several", 12)} }

func (s *several) work(ctx context.Context, c *caller) {
	s.live(ctx, c, s.round, 20*time.Millisecond)
}

func (s *several) round(ctx context.Context, c *client) {
	wants := wants{ttl: c.draw(100*time.Millisecond, maxTTL)}
	for _, i := range c.random.Perm(len(s.keys))[:3] {
		wants.keys = append(wants.keys, s.keys[i])
	}
	if c.often(3) {
		wants.keys = wants.keys[:1]
	}
	if c.often(3) {
		wants.wait = c.draw(20*time.Millisecond, maxTTL/2)
	}
	if c.often(4) {
		wants.words, wants.holds = []any{"HOLD"}, true
	}
	l := c.take(wants)
	if l == nil {
		return
	}
	c.rest(ctx, 10*time.Millisecond)
	switch {
	case wants.holds && c.often(2): // beyond the lease, if it is renewed
		if _, err := c.talk.awaitLoss(l.token, 2*l.ttl); err != nil {
			c.broke()
			return
		}
		c.extend(l)
	case wants.holds && c.often(3): // all keys go with the connection
		c.drop(l)
		return
	case c.often(4):
		c.extend(l)
	case c.often(20) && !wants.holds: // dies
		c.hangUp()
		return
	}
	c.finish(l)
}

func (s *several) verdict() (string, error) { return s.check(checker.CheckSeveral) }
