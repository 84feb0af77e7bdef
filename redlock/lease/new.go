// New: the leases of a daemon, and the mode of each of their locks. No other file refers to this one, so
// that the ballot can be read without the modes.

package lease

import (
	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/events"
	"redlockd/redlock/quorum"
)

// New returns the leases of a daemon. lockInfo notes every holder, not only those that
// give META.
func New(e *engine.Engine, v *events.Events, tokens func() engine.Token, lockInfo bool) *Leases {
	seed := fnv1a(fnvBasis, string(tokens()))
	l := &Leases{
		engine: e, events: v, tokens: tokens, records: newLeaseRecords(e.MaxTTL), hot: &hotKeys{seed: seed, lists: map[uint32][]*acquireCall{}},
		refusals: &refusals{engine: e, seed: seed}, notes: notes{e, pool.DaemonName(), lockInfo},
	}
	turns := &slotTurns{seed: seed}
	l.modeOf = func(r *LockRequest) lockMode { return lockModeOf(r, turns) }
	l.queueOf = l.queueCheckOf
	return l
}

// lockModeOf is how the request is put to the masters. Whatever is a script of redlockd also
// checks the queue of FAIR; a plain SET NX cannot.
func lockModeOf(r *LockRequest, turns *slotTurns) lockMode {
	switch {
	case r.swaps():
		return &swapMode{}
	case r.Valued, r.Mode == Exclusive && len(r.More) == 0 && r.Token == "" && !r.Reads && !r.Fair && r.PartOf == nil:
		return plainMode{}
	case r.Mode == Exclusive && r.isFresh():
		return &freshMode{}
	case len(r.More) > 0:
		return &multiMode{shared: r.Mode == Shared}
	case r.Mode == Shared:
		return &sharedMode{ends: new([quorum.MaxMasters]int64)}
	case r.Mode == Permits:
		return &permitMode{limit: int(r.Limit), slot: turns.first(r), named: r.Token != ""}
	}
	return &tokenMode{}
}

// queueCheckOf is that of a request; nil for what is no script of redlockd.
func (l *Leases) queueCheckOf(r *LockRequest, mode lockMode) *queueCheck {
	switch mode.(type) {
	case plainMode, *swapMode:
		return nil
	case *freshMode:
		return &queueCheck{}
	}
	return &queueCheck{keys: l.QueueKeys(r)}
}
