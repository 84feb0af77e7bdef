// DUNLOCKALL releases what this connection holds, as the last thing that a job does, or a pool with a connection
// that comes back.

package lock

import (
	"redlockd/commands"
	"redlockd/redlock"
)

// afterAll makes a command wait for the answers to all that were sent before it.
func afterAll([]string) bool { return true }

// dunlockall answers how many of the locks that this connection remembers it still held. Every
// one is released by itself, as by DUNLOCK: after an error it can be repeated.
func (h *handlers) dunlockall(c *commands.Call) error {
	held := c.Client.LastAcquired.All()
	keys := make([]redlock.Key, len(held))
	for i, one := range held {
		keys[i] = one.Key
	}
	switch {
	case len(held) == 0:
		c.Reply(commands.Int(0))
		return nil
	case !c.MayUseAll(keys...):
		return nil
	}
	each := commands.Gather(len(held), func(released []bool, errs []error) { c.Reply(releasedReply(keys, released, errs)) })
	for i, one := range held {
		h.unlock(c, redlock.UnlockRequest{DB: one.DB, Key: one.Key, Token: one.Token}, each(i))
	}
	return nil
}
