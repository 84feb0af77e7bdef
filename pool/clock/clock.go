// Clock is the interface to the daemon's time. It must also count the time while the
// machine is suspended, and it must not be settable: leases run out while a laptop lid is closed.

package clock

import "time"

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
