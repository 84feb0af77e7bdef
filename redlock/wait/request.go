package wait

import (
	"time"

	"redlockd/redlock/engine"
	"redlockd/redlock/lease"
)

// Request is a request for a lock that waits.
type Request struct {
	lease.LockRequest
	Wait  time.Duration // how long at most
	Fair  bool          // first come, first served, over all daemons
	Owner Owner         // the connection that will hold the lock, for the detection of deadlock cycles; nil = unknown
}

// Owner is a connection of this daemon that waits for locks and holds locks.
type Owner interface {
	// Holds lists the leases that only this owner will release. runs reports whether this
	// daemon knows that a lease is running.
	Holds(runs func(engine.LeaseID) bool) []engine.LeaseID
}
