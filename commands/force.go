// A lock that is released regardless of its holder, and the quota that this gives back.

package commands

import "redlockd/redlock"

// Force releases a lock regardless of its holder; was is false if it was free.
func (d *Deps) Force(c *Call, key redlock.Key, done func(was bool, err error)) {
	taken := d.Users.HoldersOf(c.Client.DB, key)
	d.Inspect.Force(redlock.ForceRequest{DB: c.Client.DB, Key: key, By: *c.Client.Identity()}, func(was bool, err error) {
		if err == nil {
			taken()
		}
		done(was, err)
	})
}
