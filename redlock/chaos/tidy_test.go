package chaos

// tidy_test.go: clients that leave nothing behind: they lock without a token, stay
// with their daemon, and give back until that is answered. Their leases are long,
// so what is left of them was left by the daemons.

import (
	"context"
	"time"

	"redlockd/redlock/checker"
)

type tidy struct{ *clientGroup }

func newTidy(r *run) workload { return &tidy{newClientGroup(r, "tidy", 4)} }

func tidyTrade() trade { return trade{"tidy", 12, newTidy} }

func (s *tidy) work(ctx context.Context, c *caller) {
	s.live(ctx, c, s.round, 10*time.Millisecond)
}

func (s *tidy) round(ctx context.Context, c *client) {
	wants := wants{ttl: c.stand.maxLease()}
	for _, i := range c.random.Perm(len(s.keys))[:1+c.random.IntN(2)] {
		wants.keys = append(wants.keys, s.keys[i])
	}
	if c.often(3) {
		wants.wait = c.draw(20*time.Millisecond, time.Second)
	}
	leaves := c.often(6)
	if leaves {
		wants.words, wants.holds = []any{"HOLD"}, true
	}
	if leaves && wants.wait > 0 && c.often(2) {
		c.vanish(ctx, wants)
		return
	}
	l := c.take(wants)
	if l == nil {
		return
	}
	c.rest(ctx, 10*time.Millisecond)
	if c.often(4) {
		c.extend(l)
		c.rest(ctx, 5*time.Millisecond)
	}
	if leaves {
		c.drop(l)
		return
	}
	eventually(func() bool { _, known := c.giveBack(l); return known })
}

// drop hangs up: the daemon gives back what was held with HOLD.
func (c *client) drop(l *lease) {
	calls := c.begin(checker.Release, &l.wants, l.token)
	c.hangUp()
	for _, call := range calls {
		call.Unknown()
	}
}

func (s *tidy) verdict() (string, error) { return s.check(checker.CheckSeveral) }
