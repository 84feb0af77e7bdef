// This file acquires an exclusive lock with a plain SET.

package lease

import (
	"errors"

	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/quorum"
)

// plainMode is an exclusive lock with a token of the ballot's own, or with a value that a client
// of plain SET NX chose. It is a plain SET, so that this lock and those of every other Redlock
// client on the same masters exclude one another. Its expiry is absolute: a copy that arrives
// late has already expired.
type plainMode struct {
	sameAgain
	looks  Mode // of the request once the masters are to look at the key
	valued bool // by a client of plain SET NX
}

var _ ballotMode = (*plainMode)(nil)

// after looks at a key that has refused for longer than any lease lasts, see refusals.go. A client
// of plain SET NX gets nil from Redis, too, and a wait looks by itself.
func (p *plainMode) after(a *lockBallot, v quorum.Result) (ballotMode, error) {
	next, err := p.sameAgain.after(a, v)
	if errors.Is(err, engine.ErrHeld) && p.mayLook(a) {
		a.call.request.Mode = p.looks
		return nil, nil
	}
	return next, err
}

func (p *plainMode) mayLook(a *lockBallot) bool {
	r := &a.call.request
	return !p.valued && !r.Mode.waits() && a.call.leases.refusals.lastLong(r.DB, r.Key)
}

// refused: to a client with a value of its own, a copy of an earlier ballot, which no quorum answered, would look
// like the lock of another.
func (p *plainMode) refused(a *lockBallot, _ quorum.Result) error {
	if p.valued && a.call.unanswered != 0 {
		return a.ballot.NoQuorum("the masters were too slow at first, and copies of that attempt may refuse this one until they end; try again")
	}
	return engine.ErrHeld
}

func (*plainMode) command(a *lockBallot, m *pool.SendContext, c *pool.Command, end int64) {
	if a.call.request.TTL >= Endless {
		c.Set("SET", a.key, string(a.token), "NX")
		return
	}
	c.Set("SET", a.key, string(a.token), "NX", "PXAT", m.Decimal(end))
}

func (*plainMode) read(_ *lockBallot, answer pool.Answer) vote { return readVote(answer) }

func (*plainMode) takeBack(a *lockBallot, lane int, c copyState) {
	switch {
	case a.call.request.TTL < Endless:
		a.undo(lane, c, a.key)
	case c == copyMade, c == copyMaybe:
		a.undoWithin(lane, c, a.key, a.token, anyExpiry)
	}
}

// valuedMode is a plain SET NX with a value that its client chose: the request's Token. To such a client
// an equal value that is already there belongs to another holder.
type valuedMode struct{ oneToken }

// Valued is that mode.
var Valued Mode = valuedMode{}

var valuedSET = &plainMode{valued: true}

func (valuedMode) Kind() Kind                  { return Exclusive }
func (valuedMode) bounded(r *LockRequest) bool { return len(r.More) == 0 }

func (valuedMode) ballot(*lockBallot) ballotMode {
	return valuedSET
}
