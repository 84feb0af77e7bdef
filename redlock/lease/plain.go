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
type plainMode struct{ sameAgain }

var _ lockMode = plainMode{}

// after looks at a key that has refused for longer than any lease lasts, see refusals.go. A client
// of plain SET NX gets nil from Redis, too, and a wait looks by itself.
func (p plainMode) after(a *lockBallot, v quorum.Result) (lockMode, error) {
	next, err := p.sameAgain.after(a, v)
	if r, l := &a.call.request, a.call.leases; errors.Is(err, engine.ErrHeld) && !r.Valued && r.Wait == 0 && l.refusals.lastLong(r.DB, r.Key) {
		r.Reads = true
		return l.modeOf(r), nil
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

func (plainMode) takeBack(a *lockBallot, lane int, c copyState) {
	switch {
	case a.call.request.TTL < Endless:
		a.undo(lane, c, a.key)
	case c == copyMade, c == copyMaybe:
		a.undoWithin(lane, c, a.key, a.token, anyExpiry)
	}
}
