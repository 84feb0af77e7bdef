package preauth

// ratelimit.go contains token buckets. A bucket is stored as one point in time: that at
// which it will be full again. Each token taken moves that point on, and how far it may
// lie ahead is the bucket's size.

import (
	"sync"
	"time"
)

// tokenRate is a rate: one token per interval, and after a rest as many at once as fit slack.
type tokenRate struct {
	interval, slack time.Duration
}

// perSecond allows n tokens a second, and burst at once.
func perSecond(n, burst int) tokenRate {
	interval := time.Second / time.Duration(n)
	return tokenRate{interval: interval, slack: interval * time.Duration(burst)}
}

// take takes n tokens from a bucket that will be full at a given time; wait is the time
// until they are available, 0 or less if they are available now.
func (p tokenRate) take(full, now time.Time, n int) (after time.Time, wait time.Duration) {
	if full.Before(now) {
		full = now
	}
	after = full.Add(time.Duration(n) * p.interval)
	return after, after.Sub(now) - p.slack
}

// Turns are given out at one rate, in the order of the requests.
type Turns struct {
	rate tokenRate
	now  func() time.Time

	mu   sync.Mutex
	full time.Time
}

// NewTurns gives out that many turns a second, and burst at once.
func NewTurns(each, burst int) *Turns {
	return &Turns{rate: perSecond(each, burst), now: time.Now}
}

// Reserve takes n turns and returns how long the caller must wait for them.
func (t *Turns) Reserve(n int) (wait time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.full, wait = t.rate.take(t.full, t.now(), n)
	return max(0, wait)
}
