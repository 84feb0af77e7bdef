// CONFIG GET: the options that this daemon runs with.

package commands

// configGet answers a map of the options that match any of the patterns, each
// of them once. CONFIG SET does not exist: options are set at the start.
func (t *Table) configGet(c *Call) error {
	var items []Reply
	seen := make(map[string]bool)
	for _, pattern := range c.Args[2:] {
		for _, option := range t.deps.Config(pattern) {
			name, value := option[0], option[1]
			if !seen[name] {
				seen[name] = true
				items = append(items, Bulk(name), Bulk(value))
			}
		}
	}
	c.Reply(Map(items...))
	return nil
}
