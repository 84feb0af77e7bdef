// DFORCE key: releases a lock regardless of its holder.

package inspect

import (
	"redlockd/commands"
	"redlockd/commands/arg"
	"redlockd/redlock"
)

// dforce answers 1 if the lock was held and 0 if it was free.
func (h *handlers) dforce(c *commands.Call) error {
	key, err := arg.ParseKey(c.Args[1])
	if err != nil {
		return err
	}
	request := redlock.ForceRequest{DB: c.Client.DB, Key: key, By: *c.Client.Identity()}
	h.deps.Inspect.Force(request, func(released bool, err error) {
		switch {
		case err != nil:
			c.Reply(commands.Failure(err))
		case released:
			c.Reply(commands.Int(1))
		default:
			c.Reply(commands.Int(0))
		}
	})
	return nil
}
