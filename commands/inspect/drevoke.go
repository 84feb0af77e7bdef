// DREVOKE key [text] requests that the holders of a lock let go. They decide.

package inspect

import "redlockd/commands"

// drevoke answers how many connections of this daemon hold the lock with HOLD.
func (h *handlers) drevoke(c *commands.Call) error {
	words := c.Words()
	key, text := words.Key(), ""
	if words.More() {
		text = words.Note("text")
	}
	if err := words.Err(); err != nil {
		return err
	}
	return c.Reply(commands.Int(int64(h.deps.Inspect.Revoke(c.Client.DB, key, text))))
}
