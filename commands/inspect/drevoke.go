// DREVOKE key [text] requests that the holders of a lock let go. They decide.

package inspect

import "redlockd/commands"

// drevoke answers how many connections, of all daemons, hold the lock with HOLD and are notified.
func (h *handlers) drevoke(c *commands.Call) error {
	words := c.Words()
	key, text := words.Key(), ""
	if words.More() {
		text = words.Note("text")
	}
	if err := words.Err(); err != nil {
		return err
	}
	h.deps.Inspect.Revoke(c.Client.DB, key, text, commands.Answer(c, func(n int) commands.Reply { return commands.Int(int64(n)) }))
	return nil
}
