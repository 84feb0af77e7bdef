package chaos

// keepers_test.go: clients that use a lock to the end of its time, and beyond:
// they keep it for long, ask for it again and prolong it meanwhile, let it lapse, and come
// back for it when it was somebody else's.

import (
	"context"
	"time"

	"redlockd/redlock/judge"
)

// keepers keep what they have: what they are told of it is to be true to the end.
type holders struct{ *clientGroup }

func newHolders(r *run) workload { return &holders{newClientGroup(r, "kept", 12)} }

func holdersTrade() trade { return trade{"keepers", 24, newHolders} }

func (k *holders) work(ctx context.Context, c *caller) { k.live(ctx, c, k.round, 10*time.Millisecond) }

func (k *holders) round(ctx context.Context, c *client) {
	w := wants{keys: []string{k.keys[c.random.IntN(len(k.keys))]}, ttl: c.draw(maxTTL*3/4, maxTTL)}
	if !c.often(3) {
		w.token = k.token(c)
	}
	l := c.take(w)
	if l == nil {
		return
	}
	for ends := l.until; ; {
		pause(ctx, c.draw(20*time.Millisecond, 200*time.Millisecond))
		if ctx.Err() != nil || k.record.Now() > ends-300*time.Millisecond {
			break
		}
		switch {
		case c.often(4):
			c.extend(l)
		case c.often(2) && w.token != "":
			again := w
			again.ttl = c.draw(100*time.Millisecond, maxTTL)
			c.take(again)
		}
	}
	c.finish(l)
}

func (k *holders) verdict() (string, error) { return k.check(judge.Check) }

// latecomers let short leases lapse. Some extend then, through any daemon: nobody
// else may have had the key since.
type latecomers struct {
	*clientGroup
	returns int // one of so many releases in time
}

func newLatecomers(r *run) workload { return &latecomers{newClientGroup(r, "late", 3), 3} }

// newRareLatecomers leave keys free for a while, too.
func newRareLatecomers(r *run) workload { return &latecomers{newClientGroup(r, "late", 16), 2} }

func latecomersTrade() trade { return trade{"latecomers", 16, newLatecomers} }

func (s *latecomers) work(ctx context.Context, c *caller) {
	s.live(ctx, c, s.round, 10*time.Millisecond)
}

func (s *latecomers) round(ctx context.Context, c *client) {
	w := wants{keys: []string{s.keys[c.random.IntN(len(s.keys))]}, ttl: c.draw(50*time.Millisecond, 300*time.Millisecond), token: s.token(c)}
	l := c.take(w)
	switch {
	case l == nil:
		return
	case c.often(s.returns):
		c.finish(l)
		return
	}
	over := l.until - s.record.Now()
	switch {
	case c.often(3): // when it has just lapsed, or is about to
		pause(ctx, over+c.draw(-20*time.Millisecond, 100*time.Millisecond))
	case c.often(2): // others have had it since
		pause(ctx, over+c.draw(100*time.Millisecond, maxTTL/2))
	default:
		return
	}
	if c.often(2) {
		c.hangUp() // and asks another daemon, maybe
	}
	c.extend(l)
	c.finish(l)
}

func (s *latecomers) verdict() (string, error) { return s.check(judge.Check) }
