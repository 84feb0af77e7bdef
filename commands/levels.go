// The levels of a reentrant lock as one lock with a count, for clients that know the owner alone.

package commands

import (
	"slices"

	"redlockd/redlock"
)

// LeaveLevel releases one level of an owner, which stands in at as the token. left is how many are
// left, as far as the masters show them; the error is ErrNotHeld if the owner has none.
//
// It is the level that ends first: what is left then lasts as long as the owner was promised. A
// level that has just ended by itself counts as the one that was left.
func (d *Deps) LeaveLevel(client *Client, at redlock.Lease, done func(left int64, err error)) {
	d.Inspect.ReadLock(at.DB, at.Key, func(v redlock.LockView, err error) {
		levels, count, undecided := v.Levels(at.Token)
		switch {
		case err == nil && len(levels) == 0:
			err = undecided
			if err == nil {
				err = redlock.ErrNotHeld
			}
			fallthrough
		case err != nil:
			done(0, err)
			return
		}
		left := int64(count - 1)
		slices.Reverse(levels)
		first := levels[max(0, slices.IndexFunc(levels, func(h redlock.Holder) bool { return h.Confirmed }))]
		request := redlock.UnlockRequest{DB: at.DB, Key: at.Key, Token: first.Token}
		d.Locks.Unlock(nil, request, func(released bool, err error) {
			if err == nil {
				client.LastAcquired.Forget(at.DB, at.Key, first.Token)
				d.Users.ReleasedKey(at.DB, at.Key, first.Token)
				if !released && left == 0 {
					err = redlock.ErrNotHeld
				}
			}
			done(left, err)
		})
	})
}
