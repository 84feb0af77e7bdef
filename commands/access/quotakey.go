// Keys of a user's quota. An exclusive lock counts under its key, and the next one
// replaces it. Readers and permits hold a key beside one another, so each of them
// counts under a name of its own.

package access

import (
	"time"

	"redlockd/redlock"
)

// ReservedPrefix begins the names that the daemon uses on the masters for its own
// records. No lock has such a name.
const ReservedPrefix = "redlockd:"

// HeldKey is a key of a database.
type HeldKey struct {
	DB  int
	Key redlock.Key
}

// WorkQuotaKey is the quota key of an attempt at the work key. No lock can have it:
// its name would be a reserved one.
func WorkQuotaKey(db int, key redlock.Key) HeldKey {
	return HeldKey{db, ReservedPrefix + "work:" + key}
}

// sharedQuotaKey is the quota key of one of several holders of a key. No lock can
// have it: its name would be a reserved one.
func sharedQuotaKey(db int, key redlock.Key, token redlock.Token) HeldKey {
	return HeldKey{db, ReservedPrefix + "with:" + redlock.Key(token) + ":" + key}
}

// QuotaKeyOf is the quota key of a request for the key. A token that is still to
// be chosen holds nothing yet: it needs a new slot.
func QuotaKeyOf(db int, mode redlock.Mode, key redlock.Key, token redlock.Token) HeldKey {
	if mode == redlock.Exclusive {
		return HeldKey{db, key}
	}
	return sharedQuotaKey(db, key, token)
}

// ReleasedKey notes that the token no longer holds the key, in whatever mode it did.
func (u *Users) ReleasedKey(db int, key redlock.Key, token redlock.Token) {
	if u == nil {
		return
	}
	u.Released(HeldKey{db, key}, token)
	u.Released(sharedQuotaKey(db, key, token), token)
}

// ProlongedKey notes that the token holds the key for longer, in whatever mode it does.
func (u *Users) ProlongedKey(db int, key redlock.Key, token redlock.Token, validity time.Duration) {
	if u == nil {
		return
	}
	u.Prolonged(HeldKey{db, key}, token, validity)
	u.Prolonged(sharedQuotaKey(db, key, token), token, validity)
}
