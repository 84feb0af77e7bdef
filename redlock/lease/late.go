// Answers to an acquire that come after its decision.

package lease

import (
	"redlockd/pool"
	"redlockd/redlock/quorum"
)

// DecidedLocked: after some refusals the next operation with the token waits for them.
func (a *lockBallot) DecidedLocked(v quorum.Result) {
	if a.won = v == quorum.Granted; a.awaits && !a.won {
		a.call.turn.await(a.ballot.Tally.Pending())
	}
}

// Late: a copy that comes after a grant is part of the lease, and the lease's release also
// reaches that master.
func (a *lockBallot) Late(answer pool.Answer, r quorum.Result) {
	a.followLate(&answer, false)
	if a.awaits && r != quorum.Granted {
		a.call.leaveTurn()
	}
}

// Learn: what a caller's token has made on a master that was too slow is known only now, see
// undo.go. A token of the ballot's own has been undone there without an answer.
func (a *lockBallot) Learn(answer pool.Answer) {
	if a.call.request.Token != "" {
		a.followLate(&answer, true)
	}
}

func (a *lockBallot) followLate(answer *pool.Answer, learnt bool) {
	v, kept := a.readLate(answer, learnt)
	switch {
	case !kept:
		a.giveBackLate(answer.Lane, v.copy)
	case v.no:
		a.call.leases.changes.Copied(a.ids(), false)
	}
}

// readLate notes an answer unless the ballot has failed.
func (a *lockBallot) readLate(answer *pool.Answer, learnt bool) (v vote, kept bool) {
	a.ballot.Lock()
	defer a.ballot.Unlock() // a script's reader may panic
	v = a.read(answer)
	if a.won {
		kept, a.refused = true, a.refused || v.no
	} else if !a.ballot.Over() {
		kept, a.fresh = true, a.fresh && v.isFresh()
	}
	if kept {
		a.copies.note(answer.Lane, v.copy)
	}
	if learnt {
		a.copies.answered |= 1 << answer.Lane
	}
	return v, kept
}
