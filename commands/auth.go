// AUTH [username] password: authenticates the client.

package commands

import "redlockd/commands/access"

// auth uses the texts of Redis; ioredis turns exactly the first into a warning.
func (t *Table) auth(c *Call) error {
	name, password := access.DefaultUser, c.Args[len(c.Args)-1]
	switch {
	case len(c.Args) == 2 && t.deps.Users == nil:
		return redisText("AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?")
	case len(c.Args) > 3:
		return redisText("syntax error")
	case len(c.Args) == 3:
		name = c.Args[1]
	}
	if c.SignIn(name, password) {
		c.Reply(OK)
	}
	return nil
}
