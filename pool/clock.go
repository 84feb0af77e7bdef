// Which time measures? Only a clock that counts a suspended machine too and
// that nobody can set: leases run out while a laptop lid is closed.
package pool

import "time"

// Timer is a pending call that can be taken back; see time.Timer.
type Timer interface {
	Stop() bool
	Reset(d time.Duration) bool
}

// Clock is the only source of time of this package and of redlock, so that
// tests can move it.
type Clock interface {
	// Now is the time since an arbitrary start: monotonic, suspend included.
	Now() time.Duration
	// AfterFunc calls f on its own goroutine after d.
	AfterFunc(d time.Duration, f func()) Timer
}

// recently is a Clock with a cheaper look.
type recently interface {
	// Recent is never later than Now, and earlier only by what a suspend of the
	// machine has added since the last Now.
	Recent() time.Duration
}

// Recent returns the cheapest look at a clock that is never ahead of it: good
// for the beginning of a lease, not for its end.
func Recent(c Clock) func() time.Duration {
	if r, ok := c.(recently); ok {
		return r.Recent
	}
	return c.Now
}

// RecentNow is one such look.
func RecentNow(c Clock) time.Duration {
	if r, ok := c.(recently); ok {
		return r.Recent()
	}
	return c.Now()
}
