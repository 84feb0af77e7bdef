package chaos

// patients_test.go: few clients for a key, who wait for long: nobody else comes
// whose question would wake them. Many never release.

import (
	"context"
	"errors"
	"fmt"
	"time"

	"redlockd/redlock/judge"
)

// patients and the longest time that a free key may lie idle while one waits.
type waiters struct {
	*clientGroup
	ceiling time.Duration
	words   []any
}

func waitersTrade(ceiling time.Duration, words ...any) trade {
	return trade{"patients", 24, func(r *run) workload {
		p := &waiters{newClientGroup(r, "patient", 4), ceiling, words}
		p.crowded = true
		return p
	}}
}

func (p *waiters) work(ctx context.Context, c *caller) { p.live(ctx, c, p.round, 60*time.Millisecond) }

func (p *waiters) round(ctx context.Context, c *client) {
	w := wants{keys: []string{p.keys[c.random.IntN(len(p.keys))]}, ttl: c.draw(100*time.Millisecond, 300*time.Millisecond), wait: 8 * time.Second, words: p.words}
	if c.often(2) {
		w.wait = c.draw(100*time.Millisecond, time.Second)
	}
	if c.often(20) {
		c.vanish(ctx, w)
		return
	}
	l := c.take(w)
	if l == nil {
		return
	}
	c.rest(ctx, 10*time.Millisecond)
	switch {
	case c.often(3): // lets it lapse
		pause(ctx, l.until-p.record.Now()+150*time.Millisecond) // who waits for what it has closes a circle
		return
	case c.often(3):
		c.hangUp() // and releases elsewhere, maybe
	}
	c.finish(l)
}

func (p *waiters) verdict() (string, error) {
	tally, err := p.check(judge.Check)
	p.mu.Lock()
	defer p.mu.Unlock()
	return tally, errors.Join(err, first(p.lateOnes(), 5))
}

// lateOnes had to wait for a free key for longer than the ceiling, or were not told
// in time that their own was over; what a daemon was kept from running is not counted.
func (p *waiters) lateOnes() (found []error) {
	for _, one := range idles(p.elections) {
		spent := one.to - one.from - p.run.nemesis.stood(one.election.Daemon, one.from, one.to)
		if spent > p.ceiling {
			found = append(found, fmt.Errorf("nobody had the key for %v (at most %v) while somebody waited: %v", spent, p.ceiling, one.election))
		}
	}
	for i := range p.elections {
		v := &p.elections[i]
		late := v.Complete - v.End - p.run.nemesis.stood(v.Daemon, v.End, max(v.End, v.Complete))
		if v.Outcome != judge.Unknown && late > 500*time.Millisecond {
			found = append(found, fmt.Errorf("told %v late that its wait is over: %v", late, v))
		}
	}
	return found
}
