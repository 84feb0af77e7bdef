package clock

import (
	"time"

	"golang.org/x/sys/unix"
)

// boottime cannot fail on a Linux that runs Go; the fallback serves sandboxes
// that hide the clock.
func boottime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	}
	return time.Duration(ts.Nano())
}
