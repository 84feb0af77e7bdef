// This file takes back what a failed ballot took, or may have taken.
//
// Nothing here depends on the caller, which may have left. On a master that does not answer,
// the undo is repeated until it has answered or the copy has expired, unless the caller
// chose the token, see sendUndo.

package lease

import (
	"strconv"
	"time"

	"redlockd/pool"
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

// undo deletes the ballot's copy of a key; for permits, the one in slot. Guarded by its expiry,
// it cannot delete a copy that a later ballot with the same token counts on.
func (a *lockBallot) undo(lane int, c copyState, key string, slot ...string) {
	if c != copyMade && c != copyMaybe {
		return
	}
	end := a.ends[lane]
	a.undoWithin(lane, c, key, a.token, expiryRange{end - 1, end + 1}, slot...)
}

// undoWithin deletes a token's copy of a key that ends within a range.
func (a *lockBallot) undoWithin(lane int, c copyState, key string, token engine.Token, ends expiryRange, slot ...string) {
	l := a.call.leases
	lasts := min(a.call.request.TTL, Endless)
	if a.call.request.Reenters != "" {
		lasts = l.engine.MaxTTL // as long as any other level
	}
	a.sendUndo(lane, c, key, token, lasts+a.call.request.Delay, append(releaseWords(l.engine, key, token, ends), slot...)...)
}

// sendUndo sends a command that matters until the copy has ended, at the latest lasts after the
// start. An undo by a caller's token is not repeated if it may have been executed. The caller may
// have retried through another daemon since, and made a copy with the same expiry. Before the
// undo, the retry finds this ballot's copy, and moves its expiry.
func (a *lockBallot) sendUndo(lane int, c copyState, key string, token engine.Token, lasts time.Duration, args ...string) {
	e := a.call.leases.engine
	e.Counts.Undone.Add(1)
	engine.RetryUntilAnswered(a.call.group, lane, key, pool.PendingRelease{
		Args: args, Until: a.start + lasts + 4*e.MasterTimeout,
		ConnectedAt: a.soleConnection(lane, c, token), Once: a.call.request.Token != "",
	})
}

// soleConnection is the connection on which alone an undo may be sent, 0 for any. It
// applies to a caller's token if it is unknown whether the command was executed and its
// connection is gone. The same token may have been requested through another daemon
// since, and the copy may belong to that request, with the same expiry. On the connection
// itself the undo follows the command: it then finds what the command made, or what the
// command moved to another expiry.
//
// A token that other clients use, too, is never undone on another connection: any of them
// may have deleted the copy and made one meanwhile. A copy that is left ends with its ttl.
func (a *lockBallot) soleConnection(lane int, c copyState, token engine.Token) time.Duration {
	if a.call.request.Token == "" || c != copyMaybe && len(token) >= shortToken {
		return 0
	}
	return a.connectedAt[lane]
}

// expiryRange is a range on a master's clock, in ms; anyExpiry is all of it.
type expiryRange struct{ low, high int64 }

var anyExpiry expiryRange

// releaseWords is the command that deletes a copy if it ends within the range.
func releaseWords(e *engine.Engine, key string, token engine.Token, ends expiryRange) []string {
	low, high := "", ""
	if ends != anyExpiry {
		low, high = strconv.FormatInt(ends.low, 10), strconv.FormatInt(ends.high, 10)
	}
	return []string{"EVALSHA", e.Scripts.Release, "1", key, string(token), low, high}
}
