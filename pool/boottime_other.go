//go:build !linux

package pool

import "time"

var processStart = time.Now()

// boottime elsewhere is Go's monotonic clock, which stands still while the
// machine is suspended. The seal notices: to it the masters' clocks have jumped.
func boottime() time.Duration { return time.Since(processStart) }
