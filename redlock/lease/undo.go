// This file takes back what a failed ballot took, or may have taken.
//
// Nothing here depends on the caller, which may have left. An undo names a copy by its token and its
// end. A token that the ballot generated is in no other request: its undo goes to every master that
// made a copy or did not answer, and is repeated until it has answered or the copy has expired.
//
// By a caller's token another request, in any mode, may have a copy with the same end: the first
// one's lock, if it is met and left as it is. So the undo goes only where the master has answered
// that this ballot made the copy. An answer that comes late on the same connection is learnt before
// anything else is sent there; after the connection has ended none comes, and the copy ends with its
// time. Whoever counts on a copy that he has not made has met it after it was made, and moved its
// end out of the undo's reach (quorum/validity.go). An equal copy could only be made after this one
// had gone: then the undo has been executed, and is not sent again, or the token was used again
// after its end.

package lease

import (
	"time"

	"redlockd/pool"
	"redlockd/redlock/engine"
)

// A token shorter than shortToken is so easily chosen twice that its copies belong to no
// client in particular. Its undo is sent on the connection of its command alone.
const shortToken = 8

// takeBack takes back what each master is known to have, or may have. Masters that have not
// answered yet are handled when they do, see giveBackLate.
func (a *lockBallot) takeBack() {
	a.ballot.Lock()
	a.won = false // later answers are handled by giveBackLate
	copies, n := a.copies.of, a.ballot.Tally.N
	a.ballot.Unlock()
	for lane := range n {
		a.mode.takeBack(a, lane, copies[lane])
	}
}

// giveBackLate returns a copy of a ballot that has failed meanwhile.
func (a *lockBallot) giveBackLate(lane int, c copyState) {
	if c == copyMade {
		a.call.leases.engine.Counts.LateGrants.Add(1)
	}
	a.mode.takeBack(a, lane, c)
}

// undo deletes the ballot's copy of a key; for permits, the one in slot. Guarded by its expiry,
// it cannot delete a copy that a later ballot with the same token counts on.
func (a *lockBallot) undo(lane int, c copyState, key string, slot ...string) {
	if c != copyMade && c != copyMaybe {
		return
	}
	end := a.ends[lane]
	a.undoWithin(lane, c, key, a.token, expiryRange{end - 1, end}, slot...)
}

// undoWithin deletes a token's copy of a key that ends within a range.
func (a *lockBallot) undoWithin(lane int, c copyState, key string, token engine.Token, ends expiryRange, slot ...string) {
	l := a.call.leases
	lasts := min(a.call.request.TTL, Endless)
	a.sendUndo(lane, c, key, token, lasts+a.call.request.Linger, append(releaseWords(l.engine, key, token, ends), slot...)...)
}

// sendUndo sends a command that matters until the copy has ended, at the latest lasts after the
// start. An undo by a caller's token is not sent where it is unknown whether there is something to
// undo, and not repeated if it may have been executed. The caller may
// have retried through another daemon since, and made a copy with the same expiry. Before the
// undo, the retry finds this ballot's copy, and moves its expiry.
func (a *lockBallot) sendUndo(lane int, c copyState, key string, token engine.Token, lasts time.Duration, args ...string) {
	e, chosen := a.call.leases.engine, a.call.request.Token != ""
	if chosen && c == copyMaybe {
		return
	}
	e.Counts.Undone.Add(1)
	engine.RetryUntilAnswered(a.call.group, lane, key, pool.PendingRelease{
		Args: args, Until: a.start + lasts + 4*e.MasterTimeout,
		ConnectedAt: a.soleConnection(lane, token), Once: chosen,
	})
}

// soleConnection is the connection on which alone an undo may be sent, 0 for any: that of the
// command, for a token that other clients use, too. Any of them may have deleted the copy and made
// one meanwhile. A copy that is left ends with its ttl.
func (a *lockBallot) soleConnection(lane int, token engine.Token) time.Duration {
	if a.call.request.Token == "" || len(token) >= shortToken {
		return 0
	}
	return a.connectedAt[lane]
}
