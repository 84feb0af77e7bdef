// Names of the packages below that the packages above use as this package's.

package pool

import (
	"time"

	"redlockd/pool/clock"
)

// Clock and Timer are package clock's.
type (
	Clock = clock.Clock
	Timer = clock.Timer
)

// SystemClock is the clock of the product.
func SystemClock() Clock { return clock.SystemClock() }

// Recent returns the cheapest reading of a clock that is never ahead of it.
func Recent(c Clock) func() time.Duration { return clock.Recent(c) }

// RecentNow is one such reading.
func RecentNow(c Clock) time.Duration { return clock.RecentNow(c) }
