// Changes and releases of locks, noted in the quotas of their holders.

package rediscompat

import (
	"redlockd/commands"
	"redlockd/commands/access"
	"redlockd/redlock"
)

// noting updates the quota of the lock's holder after a change of the lock.
func (h *handlers) noting(c *commands.Call, r redlock.WriteRequest, done redlock.WriteDone) redlock.WriteDone {
	return func(did bool, err error) {
		if err == nil && did {
			h.deps.Audit.Forced(c, r.Key)
			if r.Effect == redlock.WriteDeletes {
				c.Freed(r.Key)
			}
			h.deps.Users.Changed(access.HeldKey{DB: r.DB, Key: r.Key}, r.TTL)
		}
		done(did, err)
	}
}

// forcing logs a change of a lock whose value the client need not know.
func (h *handlers) forcing(c *commands.Call, key redlock.Key, done func(did bool, err error)) func(bool, error) {
	return func(did bool, err error) {
		if did && err == nil {
			h.deps.Audit.Forced(c, key)
		}
		done(did, err)
	}
}

// release releases a lock and notes it in the quotas.
func (h *handlers) release(c *commands.Call, r redlock.UnlockRequest, done redlock.UnlockDone) {
	h.deps.Locks.Unlock(c.Batch, r, func(was bool, err error) {
		if err == nil {
			h.deps.Users.ReleasedKey(r.DB, r.Key, r.Token)
		}
		if was {
			c.Freed(r.Key)
		}
		done(was, err)
	})
}
