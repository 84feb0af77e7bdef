package chaos

// readers_test.go: readers together or one writer, and tokens that change what
// they are.

import (
	"context"
	"time"

	"redlockd/redlock/judge"
)

type readers struct{ *clientGroup }

func newReaders(r *run) workload { return &readers{newClientGroup(r, "shared", 3)} }

func (s *readers) work(ctx context.Context, c *caller) {
	s.live(ctx, c, s.round, 20*time.Millisecond)
}

func (s *readers) round(ctx context.Context, c *client) {
	wants := wants{
		keys: []string{s.keys[c.random.IntN(len(s.keys))]}, ttl: c.draw(60*time.Millisecond, maxTTL/2), reads: !c.often(3),
	}
	if c.often(4) {
		wants.wait = c.draw(20*time.Millisecond, maxTTL/2)
	}
	l := c.take(wants)
	if l == nil {
		return
	}
	c.rest(ctx, 10*time.Millisecond)
	switch {
	case c.often(4): // becomes the writer, or a reader
		other := l.wants
		other.reads, other.wait, other.token = !other.reads, 0, l.token
		other.ttl = c.draw(60*time.Millisecond, maxTTL/2)
		c.take(other)
		c.rest(ctx, 10*time.Millisecond)
		if c.often(3) {
			c.rest(ctx, l.ttl)
		}
	case c.often(4):
		c.extend(l)
	case c.often(15): // dies
		c.hangUp()
		return
	}
	c.finish(l)
}

func (s *readers) verdict() (string, error) { return s.check(judge.CheckReaders) }
