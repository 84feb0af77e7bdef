package redlocktest

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"redlockd/pool"
)

// Clock is a daemon's own.
type Clock struct {
	pool.Clock
	Ahead atomic.Int64 // ns by which it is wrong

	mu   sync.Mutex
	held []time.Duration // timers of these durations never fire
	kept int             // timers that were held
}

// NewClock returns one that is right.
func NewClock() *Clock { return &Clock{Clock: pool.SystemClock()} }

// Now is the time of a clock that may be wrong.
func (c *Clock) Now() time.Duration { return c.Clock.Now() + time.Duration(c.Ahead.Load()) }

// Hold keeps timers of this duration, which are to be made later, from firing.
func (c *Clock) Hold(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held = append(c.held, d)
}

// KeptTimers counts the timers that were held.
func (c *Clock) KeptTimers() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kept
}

// AfterFunc returns a timer that fires unless it is held.
func (c *Clock) AfterFunc(d time.Duration, f func()) pool.Timer {
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.Contains(c.held, d) {
		c.kept++
		return heldTimer{}
	}
	return c.Clock.AfterFunc(d, f)
}

type heldTimer struct{}

func (heldTimer) Stop() bool               { return true }
func (heldTimer) Reset(time.Duration) bool { return true }
