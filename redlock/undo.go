// Taking back what a failed attempt took, or may have taken.
//
// Nothing here depends on the caller: it may be gone. A master that does not
// answer is told again until it has answered or the copy has expired.
package redlock

import (
	"time"

	"redlockd/pool"
)

// takeBack goes to every master that made a copy or did not answer. Masters
// that have not answered yet are dealt with when they do, see giveBackLate.
func (a *attempt) takeBack() {
	a.mu.Lock()
	a.won = false // answers that come from here on take care of themselves
	copies, n := a.copies, a.tally.n
	a.mu.Unlock()
	for lane := range n {
		a.form.takeBack(a, lane, copies[lane])
	}
}

// giveBackLate returns a copy of an attempt that has failed meanwhile.
func (a *attempt) giveBackLate(lane int, c copyState) {
	if c == copyMade {
		a.call.locker.counts.lateGrants.Add(1)
	}
	a.form.takeBack(a, lane, c)
}

// undo deletes the copy of the attempt's first key; of permits, the one in slot.
func (a *attempt) undo(lane int, c copyState, slot ...string) {
	a.undoKey(lane, c, a.key, slot...)
}

func (a *attempt) undoKey(lane int, c copyState, key string, slot ...string) {
	if c != copyMade && (c != copyMaybe || pool.Broken(pool.RuleUndoAll)) {
		return
	}
	end, slack := a.ends[lane], int64(1)
	if pool.Broken(pool.RuleUndoGuard) {
		slack = end
	}
	// Guarded by its expiry, it cannot take a copy that a later attempt with the
	// same token counts on.
	a.undoWithin(lane, c, key, end-slack, end+slack, slot...)
}

// onlyOn is the connection on which alone an undo may be sent, 0 for any. If
// nobody knows whether the command with a caller's token was executed, and its
// connection is gone, the same token may have been asked for through another
// daemon since, and what stands there may be that one's, with the same end. On
// the connection itself the undo comes behind the command: then it finds what
// the command made, or what it moved out of reach. With a token that others use,
// too, even an undo must not be repeated: it may have been executed without an
// answer, and what stands there now be a stranger's. A copy that is left so ends
// with its ttl.
func (a *attempt) onlyOn(lane int, c copyState, token Token) time.Duration {
	if a.call.request.Token == "" || c != copyMaybe && len(token) >= shortToken {
		return 0
	}
	return a.met[lane]
}

// undoWithin deletes a copy that ends within [lo, hi].
func (a *attempt) undoWithin(lane int, c copyState, key string, lo, hi int64, slot ...string) {
	a.undoToken(lane, c, key, a.token, lo, hi, slot...)
}

// undoToken is undoWithin for a key with a token of its own.
func (a *attempt) undoToken(lane int, c copyState, key string, token Token, lo, hi int64, slot ...string) {
	l := a.call.locker
	l.counts.undone.Add(1)
	debt := l.releaseDebt(key, token, lo, hi, a.start+a.call.request.TTL+4*l.late)
	debt.Args = append(debt.Args, slot...)
	debt.Met = a.onlyOn(lane, c, token)
	a.call.group.Push(lane, &repeated{group: a.call.group, key: key, debt: debt})
}
