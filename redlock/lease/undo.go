// This file takes back what a failed ballot took, or may have taken.
//
// Nothing here depends on the caller, which may have left. The undo is repeated on a
// master that does not answer until it has answered or the copy has expired.

package lease

import (
	"time"

	"redlockd/redlock/engine"
)

// takeBack goes to every master that made a copy or did not answer. Masters that have not
// answered yet are handled when they do, see giveBackLate.
func (a *lockBallot) takeBack() {
	a.ballot.Lock()
	a.won = false // later answers are handled by giveBackLate
	copies, n := a.copies, a.ballot.Tally.N
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

// undo deletes the copy of the ballot's first key; for permits, the one in slot.
func (a *lockBallot) undo(lane int, c copyState, slot ...string) {
	a.undoKey(lane, c, a.key, slot...)
}

func (a *lockBallot) undoKey(lane int, c copyState, key string, slot ...string) {
	if c != copyMade && c != copyMaybe {
		return
	}
	end := a.ends[lane]
	// Guarded by its expiry, the undo cannot delete a copy that a later ballot with the
	// same token counts on.
	a.undoWithin(lane, c, key, end-1, end+1, slot...)
}

// soleConnection is the connection on which alone an undo may be sent, 0 for any. It
// applies to a caller's token if it is unknown whether the command was executed and its
// connection is gone. The same token may have been requested through another daemon
// since, and the copy may belong to that request, with the same expiry. On the connection
// itself the undo follows the command: it then finds what the command made, or what the
// command moved to another expiry.
//
// With a token that other clients use, too, even an undo must not be repeated: it may
// have been executed without an answer, and the copy there now may be another client's. A
// copy that is left in this way ends with its ttl.
func (a *lockBallot) soleConnection(lane int, c copyState, token engine.Token) time.Duration {
	if a.call.request.Token == "" || c != copyMaybe && len(token) >= shortToken {
		return 0
	}
	return a.connectedAt[lane]
}

// undoWithin deletes a copy that ends within [lo, hi].
func (a *lockBallot) undoWithin(lane int, c copyState, key string, lo, hi int64, slot ...string) {
	a.undoToken(lane, c, key, a.token, lo, hi, slot...)
}

// undoToken is undoWithin for a key with a token of its own.
func (a *lockBallot) undoToken(lane int, c copyState, key string, token engine.Token, lo, hi int64, slot ...string) {
	l := a.call.leases
	l.engine.Counts.Undone.Add(1)
	pending := l.pendingReleaseWithin(key, token, lo, hi, a.start+a.call.request.TTL+4*l.engine.MasterTimeout)
	pending.Args = append(pending.Args, slot...)
	pending.ConnectedAt = a.soleConnection(lane, c, token)
	engine.RetryUntilAnswered(a.call.group, lane, key, pending)
}
