// Keys of a user's quota. An exclusive lock counts under its key, and the next one
// replaces it. Readers and permits hold a key beside one another, so each of them
// counts under a name of its own.

package commands

import (
	"time"

	"redlockd/redlock"
)

// sharedQuotaKey is the quota key of one of several holders of a key. No lock can
// have it: its name would be a reserved one.
func sharedQuotaKey(db int, key redlock.Key, token redlock.Token) heldKey {
	return heldKey{db, reservedPrefix + "with:" + redlock.Key(token) + ":" + key}
}

// quotaKeyOf is the quota key of a request for the key. A token that is still to
// be chosen holds nothing yet: it needs a new slot.
func quotaKeyOf(r *redlock.LockRequest, key redlock.Key, token redlock.Token) heldKey {
	if r.Mode == redlock.Exclusive {
		return heldKey{r.DB, key}
	}
	return sharedQuotaKey(r.DB, key, token)
}

// releasedKey notes that the token no longer holds the key, in whatever mode it did.
func (u *Users) releasedKey(db int, key redlock.Key, token redlock.Token) {
	if u == nil {
		return
	}
	u.released(heldKey{db, key}, token)
	u.released(sharedQuotaKey(db, key, token), token)
}

// prolongedKey notes that the token holds the key for longer, in whatever mode it does.
func (u *Users) prolongedKey(db int, key redlock.Key, token redlock.Token, validity time.Duration) {
	if u == nil {
		return
	}
	u.prolonged(heldKey{db, key}, token, validity)
	u.prolonged(sharedQuotaKey(db, key, token), token, validity)
}
