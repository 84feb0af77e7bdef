// Grants: the replies of DLOCK and DMLOCK.

package lock

import (
	"time"

	"redlockd/commands"
	"redlockd/redlock"
)

// lockAnswer is the reply of one DLOCK or DMLOCK.
type lockAnswer struct {
	commands.PendingGrant
	lastAcquired *commands.LastAcquired
}

// decided takes the outcome from the masters.
func (a *lockAnswer) decided(grant redlock.Grant, err error) {
	if err != nil {
		a.Refuse(commands.Failure(err))
		return
	}
	a.Grant(grant, lasting(&grant))
}

// Granted remembers the locks for DUNLOCK without a token.
func (a *lockAnswer) Granted(validity time.Duration) commands.Reply {
	grant := a.Outcome()
	for _, key := range a.Keys() {
		a.lastAcquired.Remember(a.DB(), key, grant.Token, lasting(grant))
	}
	return commands.Array(
		commands.Bulk(string(grant.Token)),
		commands.Int(validity.Milliseconds()),
		commands.Int(int64(grant.Fence)),
	)
}

// Fate names what becomes of a lock that is granted too late.
func (a *lockAnswer) Fate(fresh bool) string {
	several := len(a.Keys()) > 1
	switch {
	case several && fresh:
		return "the locks are given back"
	case several:
		return "the locks that this token already held are left as they are"
	case fresh:
		return "the lock is given back"
	}
	return "the lock that this token already held is left as it is"
}
