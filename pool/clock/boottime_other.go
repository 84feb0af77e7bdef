//go:build !linux

package clock

import "time"

var processStart = time.Now()

// boottime elsewhere is Go's monotonic clock, which stands still while the
// machine is suspended. The seal detects that: the masters' clocks seem to have jumped.
func boottime() time.Duration { return time.Since(processStart) }
