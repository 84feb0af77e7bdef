package chaos

// waiting_test.go: clients that wait for few keys. Some vanish while they wait,
// some never release, and the next one is served when the lease has ended.

import (
	"context"
	"errors"
	"fmt"
	"time"

	"redlockd/redlock/judge"
)

const (
	// polled is what a poll costs where the masters announce nothing.
	polled = 500 * time.Millisecond
	// settled is how long after a fault its consequences are not held against anybody
	// who is to be served at once.
	settled = 2 * time.Second
)

type waiting struct{ *clientGroup }

func newWaiting(r *run) workload {
	w := &waiting{newClientGroup(r, "wait", 2)}
	w.crowded = true
	return w
}

func (w *waiting) work(ctx context.Context, c *caller) {
	w.live(ctx, c, w.round, 30*time.Millisecond)
}

// longestWait leaves room in long runs for what a wait must never come to.
func (r *run) longestWait() time.Duration {
	if r.long {
		return 20 * polled
	}
	return maxTTL
}

func (w *waiting) round(ctx context.Context, c *client) {
	wants := wants{
		keys: w.keys[:1], ttl: c.draw(100*time.Millisecond, maxTTL),
		wait: c.draw(50*time.Millisecond, w.run.longestWait()), looks: true,
	}
	if c.often(4) {
		wants.keys = w.keys[1:]
	}
	switch {
	case c.often(10):
		c.vanish(ctx, wants)
		return
	case c.often(10):
		wants.wait = 0 // it may pass those who wait
	}
	l := c.take(wants)
	if l == nil {
		return
	}
	c.rest(ctx, 15*time.Millisecond)
	switch {
	case c.often(15): // dies
		c.hangUp()
		return
	case c.often(10):
		c.hangUp() // and comes back elsewhere, maybe
	}
	c.finish(l)
}

func (w *waiting) verdict() (string, error) {
	tally, err := w.check(judge.Check)
	w.mu.Lock()
	defer w.mu.Unlock()
	more, late := w.run.prompt(w.elections, 10*polled)
	passed := overtakes(w.elections, func(first, later *election) bool { return first.Daemon == later.Daemon })
	return fmt.Sprintf("%s; %s; %d seen in line, %d overtaken", tally, more, seen(w.elections), len(passed)),
		errors.Join(err, late, first(passed, 5))
}

// seen counts those of which it is known that they stood in a line.
func seen(visits []election) (n int) {
	for i := range visits {
		if visits[i].Stood > 0 {
			n++
		}
	}
	return n
}
