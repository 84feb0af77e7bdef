// AUTH [username] password: authenticates the client.

package conn

import (
	"redlockd/commands"
	"redlockd/commands/access"
)

// auth uses the texts of Redis; ioredis turns exactly the first into a warning.
func (h *handlers) auth(c *commands.Call) error {
	name, password := access.DefaultUser, c.Args[len(c.Args)-1]
	switch {
	case len(c.Args) == 2 && h.deps.Users == nil:
		return commands.RedisText("AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?")
	case len(c.Args) > 3:
		return commands.RedisText("syntax error")
	case len(c.Args) == 3:
		name = c.Args[1]
	}
	if c.SignIn(name, password) {
		c.Reply(commands.OK)
	}
	return nil
}
