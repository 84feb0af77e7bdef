// Permits of one key, as many as there are callers.

package main

import "redlockd/redlock"

func permitScenarios() []scenario {
	return modeScenarios("engine, 256 permits of one key, ", func(int) []redlock.LockRequest {
		return []redlock.LockRequest{{Key: "bench:permits", TTL: leaseTTL, Mode: redlock.PermitsOf(256)}}
	})
}
