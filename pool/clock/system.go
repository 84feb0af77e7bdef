package clock

import (
	"sync/atomic"
	"time"
)

type systemClock struct {
	start  time.Duration
	origin time.Time
	beyond *atomic.Int64 // ns that CLOCK_BOOTTIME is ahead of Go's clock: suspends
}

// SystemClock measures with CLOCK_BOOTTIME, which cannot be set and which
// counts the time while the machine is suspended; Go's own monotonic clock does not.
func SystemClock() Clock {
	return systemClock{start: boottime(), origin: time.Now(), beyond: &atomic.Int64{}}
}

// Now costs a system call (0.24 µs here). It also stores how long the machine has
// been suspended, for Recent: Go's clock is read second, so the difference is
// never more than that, however long the two reads are apart.
func (c systemClock) Now() time.Duration {
	now := boottime() - c.start
	if ahead := int64(now - time.Since(c.origin)); ahead > c.beyond.Load() {
		c.beyond.Store(ahead)
	}
	return now
}

// Recent costs half of that. Every flush calls Now, so it lags a suspend by one
// heartbeat at most.
func (c systemClock) Recent() time.Duration {
	return time.Since(c.origin) + time.Duration(c.beyond.Load())
}

func (systemClock) AfterFunc(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) }
