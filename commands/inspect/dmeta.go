// DMETA key token text replaces the META of a holder while it holds the lock.

package inspect

import (
	"redlockd/commands"
	"redlockd/redlock"
)

// dmeta answers 1, or 0 if the token does not hold the lock.
func (h *handlers) dmeta(c *commands.Call) error {
	words := c.Words()
	id := redlock.Lease{DB: c.Client.DB, Key: words.Key(), Token: words.Token()}
	text := words.Meta()
	if err := words.Err(); err != nil {
		return err
	}
	h.deps.Inspect.Describe(id, text, commands.Answer(c, commands.Bool))
	return nil
}
