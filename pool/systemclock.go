package pool

import (
	"time"

	"golang.org/x/sys/unix"
)

type systemClock struct{ start time.Duration }

// SystemClock measures with CLOCK_BOOTTIME, which nobody can set and which
// counts the time a machine is suspended; Go's own monotonic clock does not.
func SystemClock() Clock { return systemClock{boottime()} }

func (c systemClock) Now() time.Duration { return boottime() - c.start }

func (systemClock) AfterFunc(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) }

// boottime cannot fail on a Linux that runs Go; the fallback serves kernels
// and sandboxes that hide the clock.
func boottime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	}
	return time.Duration(ts.Nano())
}
