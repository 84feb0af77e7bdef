// Observers: what follows the leases of this daemon from outside. Without one a lease costs no more.

package lease

import (
	"time"

	"redlockd/redlock/engine"
)

// change is what happened to a lease.
type change uint8

const (
	acquired  change = iota + 1 // a client was granted it
	extended                    // it lasts longer
	shortened                   // it ends earlier
	released                    // it was given back
	forced                      // it was taken from its holder
)

// observer receives what happens to leases, in the order in which it happens to each of them. Its calls
// must not block; locks may be held.
type observer interface {
	// changed: known is the lease as it was known before, or since it was acquired by r. It is valid until
	// then, and no copy is left after it has lasted.
	changed(c change, id engine.LeaseID, known leaseRecord, until, lasts time.Duration, r *LockRequest)
	// ends: a release is about to be sent, with the batch.
	ends(b *engine.Batch, id engine.LeaseID, known leaseRecord)
}

func (l *Leases) changed(c change, id engine.LeaseID, known leaseRecord, until, lasts time.Duration, r *LockRequest) {
	for _, o := range l.observers {
		o.changed(c, id, known, until, lasts, r)
	}
}

// report is changed for what is known by its fence alone.
func (l *Leases) report(c change, id engine.LeaseID, fence engine.Fence, lasts time.Duration) {
	l.changed(c, id, leaseRecord{fence: fence}, 0, lasts, nil)
}

func (l *Leases) ends(b *engine.Batch, id engine.LeaseID, known leaseRecord) {
	for _, o := range l.observers {
		o.ends(b, id, known)
	}
}
