// DFORCE key: releases a lock regardless of its holder.

package commands

import "redlockd/redlock"

// dforce answers 1 if the lock was held and 0 if it was free.
func (t *Table) dforce(c *Call) error {
	key, err := parseKey(c.Args[1])
	if err != nil {
		return err
	}
	request := redlock.ForceRequest{DB: c.Client.DB, Key: key, By: *c.Client.identity()}
	t.deps.Inspect.Force(request, func(released bool, err error) {
		switch {
		case err != nil:
			c.Reply(failure(err))
		case released:
			c.Reply(Int(1))
		default:
			c.Reply(Int(0))
		}
	})
	return nil
}
