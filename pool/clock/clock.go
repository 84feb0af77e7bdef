// Clock is the interface to the daemon's time. It must also count the time while the
// machine is suspended, and it must not be settable: leases run out while a laptop lid is closed.

package clock

import (
	"sync/atomic"
	"time"
)

// Timer is a pending call that can be cancelled; see time.Timer.
type Timer interface {
	Stop() bool
	Reset(d time.Duration) bool
}

// Clock is the only source of time of pool and of redlock, so that
// tests can move it.
type Clock interface {
	// Now is the time since an arbitrary start: monotonic, suspend included.
	Now() time.Duration
	// AfterFunc calls f on its own goroutine after d.
	AfterFunc(d time.Duration, f func()) Timer
}

// recentClock is a Clock that also has a cheaper reading.
type recentClock interface {
	// Recent is never later than Now, and earlier only by what a suspend of the
	// machine has added since the last Now.
	Recent() time.Duration
}

// Recent returns the cheapest reading of a clock that is never ahead of it: suitable
// for the beginning of a lease, not for its end.
func Recent(c Clock) func() time.Duration { return func() time.Duration { return RecentNow(c) } }

// RecentNow is one such reading.
func RecentNow(c Clock) time.Duration {
	if r, ok := c.(recentClock); ok {
		return r.Recent()
	}
	return c.Now()
}

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

// Hybrid is the clock from which fences are drawn: the median of the masters' clocks
// in microseconds, but never at or below anything drawn or seen before. A value
// seen on a master is followed without a bound: bounding it was simulated and
// cost a third of the grants. It is below 2⁵³, where Lua and zset scores stop
// being exact, until the year 2255.
type Hybrid struct {
	last int64 // highest given
	Seen int64 // highest register read under a good seal
}

// Tick draws a number above all earlier ones; median is the masters' time in µs.
func (h *Hybrid) Tick(median int64) int64 {
	h.last = max(median, h.last+1, h.Seen+1)
	return h.last
}

// Observe raises Seen to a register that was read under a good seal.
func (h *Hybrid) Observe(register int64) { h.Seen = max(h.Seen, register) }
