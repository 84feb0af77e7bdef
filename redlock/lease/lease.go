// The calls that acquire, release, renew and give back locks.
//
// The path of one lock: Lock queues a plain SET NX PXAT on every master's lane
// (acquire.go, engine/ballot.go). Each answer is a vote (quorum/tally.go) if the seal at the end of its flush is
// good. At a quorum of yes votes, the fence is chosen (quorum/fence.go), the remaining lease is
// computed (quorum/validity.go) and the grant is handed over. Nothing is cancelled: the
// remaining masters are the lease's fault tolerance. Without a quorum, every copy that
// was or may have been made is taken back (undo.go). Unlock (release.go) and Extend
// (extend.go) follow on the same lanes.

package lease

import (
	"time"

	"redlockd/redlock/engine"
)

// Lock requests a lock; done is called exactly once. b may be nil; otherwise nothing is
// sent before b.Send.
func (l *Leases) Lock(b *engine.Batch, r LockRequest, done LockDone) {
	if err := l.engine.Enter(); err != nil {
		done(Grant{}, err)
		return
	}
	if r.Mode == nil {
		r.Mode = l.exclusive
	}
	call := &acquireCall{leases: l, group: l.engine.Pool.Group(r.DB), request: r, done: done}
	if call.request.tries() && l.tries != nil {
		l.tries.Begins(&call.request)
	}
	if call.bounded = r.Mode.bounded(&call.request); call.bounded {
		l.hot.enter(b, call)
		return
	}
	call.start(b)
}

// Unlock releases a lock, now or with Linger soon. The result is true if this token held it until
// now.
func (l *Leases) Unlock(b *engine.Batch, r UnlockRequest, done UnlockDone) {
	if err := l.engine.Enter(); err != nil {
		done(false, err)
		return
	}
	id := engine.LeaseID{DB: r.DB, Key: r.Key, Token: r.Token}
	if l.tokenQueue.idle() {
		l.releaseFor(b, r, done)
		return
	}
	l.tokenQueue.enter(id, b, queuedOperation{run: func(b *engine.Batch) { l.releaseFor(b, r, done) }})
}

// Extend makes a lock that is still held last at least r.TTL from now.
func (l *Leases) Extend(b *engine.Batch, r ExtendRequest, done ExtendDone) {
	if err := l.engine.Enter(); err != nil {
		done(Grant{}, err)
		return
	}
	r.repeats = true
	l.extendInTurn(b, r, done)
}

// extendInTurn starts now, or when the acquire in flight with the same token ends.
func (l *Leases) extendInTurn(b *engine.Batch, r ExtendRequest, done ExtendDone) {
	id := engine.LeaseID{DB: r.DB, Key: r.Key, Token: r.Token}
	if l.tokenQueue.idle() {
		l.extend(b, r, done)
		return
	}
	l.tokenQueue.enter(id, b, queuedOperation{run: func(b *engine.Batch) { l.extend(b, r, done) }})
}

// Undelivered handles a grant whose client has left. What its token held before stays as
// it was.
func (l *Leases) Undelivered(g Grant) {
	if g.Fresh {
		l.GiveBack(g)
	}
}

// GiveBack releases a grant that never reached its holder.
func (l *Leases) GiveBack(g Grant) {
	if _, whole := g.ballot.(*joint); whole {
		g.ballot.takeBack()
		return
	}
	l.engine.Counts.GivenBack.Add(1)
	if !g.Chosen() {
		event := released
		if g.part {
			event = 0 // it was not announced
		}
		for _, id := range g.Leases() {
			l.releaseAlways(event, nil, id, func(bool, error) {})
		}
		return
	}
	g.ballot.takeBack()
	for i, key := range g.Keys() {
		l.records.dropGrant(engine.LeaseID{DB: g.db, Key: key, Token: g.TokenOf(i)}, g.Fence)
		l.freed(nil, g.db, key)
	}
}

// ReleaseAlways releases a lease that no client releases any more, beyond the limit of what is in
// flight if necessary.
func (l *Leases) ReleaseAlways(id engine.LeaseID) {
	l.releaseAlways(released, nil, id, func(bool, error) {})
}

// ReleaseForced releases a lease regardless of its holder, whose renewal ends before.
func (l *Leases) ReleaseForced(b *engine.Batch, id engine.LeaseID, done UnlockDone) {
	l.changes.Forced(id)
	l.releaseAlways(forced, b, id, done)
}

func (l *Leases) releaseAlways(event change, b *engine.Batch, id engine.LeaseID, done UnlockDone) {
	l.engine.EnterAlways()
	l.startRelease(b, &release{id: id, event: event, done: done}, nil)
}

// GiveUp releases what no client will release any more, with Linger only after that: the client may
// not know yet that its connection has ended. If the holder chose the token, it may by
// now hold it through another daemon, after its connection to this one broke. That lease is not
// this daemon's to end, and runs out by itself.
func (l *Leases) GiveUp(g *Grant) {
	if g.Chosen() {
		return
	}
	for _, id := range g.Leases() {
		l.engine.EnterAlways()
		l.startRelease(nil, &release{id: id, event: released, linger: g.linger, done: func(bool, error) {}}, nil)
	}
}

// Renew extends a lease for its holder by ttl, beyond the limit of what is in flight if necessary. If the
// lease is released meanwhile, the renewal precedes the release on every master, or finds nothing.
func (l *Leases) Renew(b *engine.Batch, g *Grant, ttl time.Duration, done ExtendDone) {
	l.engine.EnterAlways()
	l.extend(b, ExtendRequest{DB: g.db, Key: g.Key, More: g.More, Token: g.Token, TTL: ttl}, done)
}

// IsBusy reports whether an acquire of one of the grant's leases is in flight, and its token was
// chosen by the caller: a renewal would move the expiry, and that acquire's undo would miss the copy.
func (l *Leases) IsBusy(g *Grant) bool { return g.Chosen() && l.tokenQueue.busy(g.Leases()) }

// Runs reports whether this daemon knows that the lease is running now.
func (l *Leases) Runs(id engine.LeaseID) bool {
	known, ok := l.records.find(id)
	return ok && known.until > l.engine.Recent()
}

// Known is what this daemon knows of a lease that it granted; empty of another one.
func (l *Leases) Known(id engine.LeaseID) Known {
	known, _ := l.records.find(id)
	return Known{known.until, known.fence, known.kind, known.granted, known.requester}
}

// Known is a lease as its daemon knows it.
type Known struct {
	Until time.Duration // end of the validity
	Fence engine.Fence
	Kind  Kind
	// Granted and Requester are when it was granted and to which client, for people; 0 and nil if
	// another daemon granted it.
	Granted   time.Duration
	Requester *Requester
}

// HeldBy is how many leases that run each client took through this daemon, by the client's number.
func (l *Leases) HeldBy() map[int64]int { return l.records.heldBy(l.engine.Clock.Now()) }

// Held is how many leases that this daemon granted run, as far as it knows, and how long those
// were held that it released.
func (l *Leases) Held() (running int, heldFor HoldTimes) {
	return l.records.held(l.engine.Clock.Now()), l.records.heldFor.load()
}
