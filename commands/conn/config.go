// CONFIG GET: the options that this daemon runs with.

package conn

import "redlockd/commands"

// configGet answers a map of the options that match any of the patterns, each
// of them once. CONFIG SET does not exist: options are set at the start.
func (h *handlers) configGet(c *commands.Call) error {
	var items []commands.Reply
	seen := make(map[string]bool)
	for _, pattern := range c.Args[2:] {
		for _, option := range h.deps.Config(pattern) {
			name, value := option[0], option[1]
			if !seen[name] {
				seen[name] = true
				items = append(items, commands.Bulk(name), commands.Bulk(value))
			}
		}
	}
	c.Reply(commands.Map(items...))
	return nil
}
