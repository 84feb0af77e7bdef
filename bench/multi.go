// Three uncontended keys at a time.

package main

import "redlockd/redlock"

func multiScenarios() []scenario {
	return modeScenarios("engine, three keys at a time, ", func(worker int) []redlock.LockRequest {
		keys := workerKeys("multi", worker)
		var all []redlock.LockRequest
		for i := 0; i+2 < len(keys); i += 3 {
			all = append(all, redlock.LockRequest{
				Key: redlock.Key(keys[i]), More: []redlock.Key{redlock.Key(keys[i+1]), redlock.Key(keys[i+2])}, TTL: leaseTTL,
			})
		}
		return all
	})
}
