package proxy

// pace.go answers: may this happen already, if so many a second may? A bucket of
// tokens is one point in time here, that at which it will be full again: each
// token taken moves it on, and how far it may lie ahead is the bucket's size.

import (
	"sync"
	"time"
)

// pace is a rate: once an interval, and after a rest so many at once as fit slack.
type pace struct {
	interval, slack time.Duration
}

// perSecond is n a second, and burst at once.
func perSecond(n, burst int) pace {
	interval := time.Second / time.Duration(n)
	return pace{interval: interval, slack: interval * time.Duration(burst)}
}

// take takes n tokens from a bucket that will be full at a given time; wait is
// for how long they are owed, 0 or less if they were there.
func (p pace) take(full, now time.Time, n int) (after time.Time, wait time.Duration) {
	if full.Before(now) {
		full = now
	}
	after = full.Add(time.Duration(n) * p.interval)
	return after, after.Sub(now) - p.slack
}

// turns gives out turns at one pace to all who ask, in the order of their asking.
type turns struct {
	pace pace
	now  func() time.Time

	mu   sync.Mutex
	full time.Time
}

// reserve takes n turns and says after which time they have come.
func (t *turns) reserve(n int) (wait time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.full, wait = t.pace.take(t.full, t.now(), n)
	return max(0, wait)
}

// rarely is true at most once a minute. The zero value is ready.
type rarely struct {
	mu   sync.Mutex
	last time.Time
}

func (r *rarely) now() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.last.IsZero() && time.Since(r.last) < time.Minute {
		return false
	}
	r.last = time.Now()
	return true
}
