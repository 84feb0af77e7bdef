package chaos

// fair_test.go: clients of all daemons that wait in one queue, and a writer
// among readers. A client that is in the queue before another one comes is served first.

import (
	"context"
	"errors"
	"fmt"
	"time"

	"redlockd/redlock/checker"
)

type fair struct {
	*clientGroup
	rests time.Duration // while it has a key
}

func newFair(r *run) workload { return &fair{newClientGroup(r, "fair", 2), 60 * time.Millisecond} }

// newLongFair has queues in which a place must be kept for longer than it lasts.
func newLongFair(r *run) workload { return &fair{newClientGroup(r, "fair", 2), maxTTL} }

func (f *fair) work(ctx context.Context, c *caller) { f.live(ctx, c, f.round, 30*time.Millisecond) }

func (f *fair) round(ctx context.Context, c *client) {
	wants := wants{
		keys: f.keys[:1], ttl: c.draw(100*time.Millisecond, maxTTL), words: []any{"FAIR"},
		wait: c.draw(50*time.Millisecond, f.run.longestWait()), looks: true,
	}
	if c.often(2) {
		wants.keys, wants.reads = f.keys[1:], !c.often(4)
	}
	if c.often(12) {
		c.vanish(ctx, wants)
		return
	}
	if c.often(8) {
		wants.wait, wants.looks, wants.minds = 0, false, true // it passes no waiter either
	}
	l := c.take(wants)
	if l == nil {
		return
	}
	c.rest(ctx, min(f.rests, wants.ttl*3/4))
	if c.often(15) { // dies
		c.hangUp()
		return
	}
	c.finish(l)
}

func (f *fair) verdict() (string, error) {
	tally, err := f.check(checker.CheckReaders)
	f.mu.Lock()
	defer f.mu.Unlock()
	all := overtakes(f.elections, func(*election, *election) bool { return true })
	calm := 0
	for i := range f.elections {
		if v := &f.elections[i]; v.Stood > 0 && f.undisturbed(v) {
			calm++
		}
	}
	unexplained := overtakes(f.elections, func(stood, _ *election) bool { return f.undisturbed(stood) })
	return fmt.Sprintf("%s; %d seen in the queue, %d overtaken; without a fault that explains it %d and %d",
		tally, seen(f.elections), len(all), calm, len(unexplained)), errors.Join(err, first(unexplained, 5))
}

// undisturbed: nothing kept its daemon from keeping this one in the queues of a
// quorum. Faults of the daemon of the one that passes explain nothing.
func (f *fair) undisturbed(v *election) bool {
	return f.run.nemesis.allowedError(v.Daemon, v.Key, v.Invoke, v.Complete, queueTerms, "scripts flushed") == ""
}
