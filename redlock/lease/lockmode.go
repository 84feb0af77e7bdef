// lockMode: what a ballot writes on a master, and how it reads the answer.

package lease

import (
	"errors"

	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/quorum"
	"redlockd/redlock/scripts"
)

// lockMode is one way to hold a key: exclusive, as a reader, with one of several permits, over
// several keys. The ballot is the same for all of them; its mode writes the command and reads
// the answer. command and read are called for each master from its lane, the other methods
// after the ballot is decided.
type lockMode interface {
	// command requests a copy from one master that lasts until end, ms of the master's clock.
	command(a *lockBallot, m *pool.SendContext, c *pool.Command, end int64)
	// read turns one master's answer into a vote. It is called with the ballot's lock held, in
	// the order of the answers.
	read(a *lockBallot, answer pool.Answer) vote
	// takeBack returns what this ballot made, or may have made, on one master.
	takeBack(a *lockBallot, lane int, c copyState)
	// after decides what follows a ballot that was refused or split: the error for the caller,
	// or another ballot, at once or after a pause. A nil mode is that of the request again.
	after(a *lockBallot, v quorum.Result) (lockMode, error)
}

// bulkMode is a lockMode of which several acquires in a flush can be one call of a script.
type bulkMode interface {
	bulkScript(s *scripts.Set) string // its SHA1
	// addToBulk adds the arguments, and the keys unless the ballot has those of a queue.
	addToBulk(a *lockBallot, m *pool.SendContext, c *pool.BulkCall, end int64)
}

// lockModeOf is how the request is put to the masters. Whatever is a script of redlockd also
// checks the queue of FAIR; a plain SET NX cannot.
func lockModeOf(r *LockRequest, turns *slotTurns) lockMode {
	switch {
	case r.Script != nil:
		return &scriptMode{script: r.Script}
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

// sameAgain is a part of modes that send the same request again after a split.
type sameAgain struct{}

func (sameAgain) after(a *lockBallot, v quorum.Result) (lockMode, error) {
	switch {
	case v == quorum.Split:
		return nil, nil
	case a.ballot.MostlyWrongType():
		return nil, engine.ErrWrongType
	}
	return nil, engine.ErrHeld
}

// plainMode is an exclusive lock with a token of the ballot's own, or with a value that a client
// of plain SET NX chose. It is a plain SET, so that this lock and those of every other Redlock
// client on the same masters exclude one another. Its expiry is absolute: a copy that arrives
// late has already expired.
type plainMode struct{ sameAgain }

var _ lockMode = plainMode{}

// after looks at a key that has refused for longer than any lease lasts, see refusals.go. A client
// of plain SET NX gets nil from Redis, too, and a wait looks by itself.
func (p plainMode) after(a *lockBallot, v quorum.Result) (lockMode, error) {
	next, err := p.sameAgain.after(a, v)
	if r, l := &a.call.request, a.call.leases; errors.Is(err, engine.ErrHeld) && !r.Valued && r.Wait == 0 && l.refusals.lastLong(r.DB, r.Key) {
		r.Reads = true
		return lockModeOf(r, &l.slotTurns), nil
	}
	return next, err
}

func (plainMode) command(a *lockBallot, m *pool.SendContext, c *pool.Command, end int64) {
	if a.call.request.TTL >= Endless {
		c.Set("SET", a.key, string(a.token), "NX")
		return
	}
	c.Set("SET", a.key, string(a.token), "NX", "PXAT", m.Decimal(end))
}

func (plainMode) read(_ *lockBallot, answer pool.Answer) vote { return readVote(answer) }

// takeBack leaves a copy alone that may belong to another client with the same value: values
// like "1" are common.
func (plainMode) takeBack(a *lockBallot, lane int, c copyState) {
	switch {
	case c == copyMaybe && len(a.token) < shortToken:
	case a.call.request.TTL < Endless:
		a.undo(lane, c, a.key)
	case c == copyMade, c == copyMaybe:
		a.undoWithin(lane, c, a.key, a.token, anyExpiry)
	}
}
