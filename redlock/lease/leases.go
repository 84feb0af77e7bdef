// Leases: the state that the operations on leases share, and the two hooks.

package lease

import (
	"time"

	"redlockd/redlock/engine"
	"redlockd/redlock/quorum"
)

// Leases are the leases that this daemon has granted.
type Leases struct {
	engine *engine.Engine
	tokens func() engine.Token

	records    *leaseRecords
	tokenQueue perTokenQueue
	hot        *hotKeys
	refusals   *refusals

	exclusive Mode // of requests without one
	ofOptions any  // what options keep of this daemon, see modes.go

	observers []observer
	kinds     heldKinds

	freed   func(b *engine.Batch, db int, key engine.Key)
	changes Changes
	tries   Tries // nil: nothing follows them
}

// Changes receives what happens to leases. Its calls must not block.
type Changes interface {
	Released(id engine.LeaseID)                         // a release is about to leave
	Forced(id engine.LeaseID)                           // its end is about to leave; without a token, any holder's
	Extended(ids []engine.LeaseID, until time.Duration) // the holder has extended it
	Shortened(id engine.LeaseID, until time.Duration)   // it ends earlier; without a token, any holder's
	Copied(ids []engine.LeaseID, taken bool)            // a master has taken a copy or refused it
}

// Tries follows the requests that do not wait. Its calls must not block.
type Tries interface {
	Begins(r *LockRequest)           // it is about to be sent
	Ended(r *LockRequest, err error) // its answer
}

// Follow sets what follows the requests that do not wait.
func Follow(l *Leases, t Tries) { l.tries = t }

// Connect sets the two hooks for what must go up. freed is called for a key that may be free now,
// with the batch that the release is part of.
func (l *Leases) Connect(freed func(b *engine.Batch, db int, key engine.Key), changes Changes) {
	l.freed, l.changes = freed, changes
}

// goneAt is when no copy is left of a lease that an operation has won now. Copies that were
// counted are written by now. Masters in this process have this daemon's clock, so these copies
// end exactly so much later; of the others no quorum is left then.
func (l *Leases) goneAt(start, now, ttl time.Duration) time.Duration {
	if l.engine.InProcess {
		return now + ttl + l.engine.Late + 2*quorum.ExpiryGrain*time.Millisecond
	}
	return start + ttl + l.engine.MasterTimeout + l.engine.Late
}
