// Where does what somebody holds stand in a user's quota? An exclusive lock
// stands at its key, and the next one takes its place. Readers and permits hold
// a key beside one another, so each of them stands at a name of its own.
package commands

import (
	"time"

	"redlockd/redlock"
)

// roomBeside is where one of several holders of a key stands. No lock can stand
// there: its name would be a reserved one.
func roomBeside(db int, key redlock.Key, token redlock.Token) heldKey {
	return heldKey{db, reservedPrefix + "with:" + redlock.Key(token) + ":" + key}
}

// roomOf is where a request for the key will stand. A token that is still to be
// chosen holds nothing yet: it takes new room.
func roomOf(r *redlock.LockRequest, key redlock.Key, token redlock.Token) heldKey {
	if r.Mode == redlock.Exclusive {
		return heldKey{r.DB, key}
	}
	return roomBeside(r.DB, key, token)
}

// gone notes that the token does not hold the key any more, in whatever mode it did.
func (u *Users) gone(db int, key redlock.Key, token redlock.Token) {
	if u == nil {
		return
	}
	u.released(heldKey{db, key}, token)
	u.released(roomBeside(db, key, token), token)
}

// lasts notes that the token holds the key for longer, in whatever mode it does.
func (u *Users) lasts(db int, key redlock.Key, token redlock.Token, validity time.Duration) {
	if u == nil {
		return
	}
	u.prolonged(heldKey{db, key}, token, validity)
	u.prolonged(roomBeside(db, key, token), token, validity)
}
