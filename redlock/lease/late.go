// Answers to an acquire that come after its decision.

package lease

import (
	"redlockd/pool"
	"redlockd/redlock/quorum"
)

// DecidedLocked: after an upgrade that failed, the next operation with the token waits for them.
func (a *lockBallot) DecidedLocked(v quorum.Result) {
	if a.won = v == quorum.Granted; a.reader && !a.won {
		a.call.turn.await(a.ballot.Tally.Pending())
	}
}

// Late: a copy that comes after a grant is part of the lease, and the lease's release also
// reaches that master.
func (a *lockBallot) Late(answer pool.Answer, r quorum.Result) {
	v, won := a.readLate(&answer)
	switch {
	case !won:
		a.giveBackLate(answer.Lane, v.copy)
	case v.no && a.call.request.Hold != nil:
		a.call.leases.changes.Copied(a.ids(), false)
	}
	if a.reader && r != quorum.Granted {
		a.call.leaveTurn()
	}
}

func (a *lockBallot) readLate(answer *pool.Answer) (v vote, won bool) {
	a.ballot.Lock()
	defer a.ballot.Unlock() // a script's reader may panic
	if v = a.read(answer); a.won {
		a.copies[answer.Lane], a.refused = v.copy, a.refused || v.no
	}
	return v, a.won
}
