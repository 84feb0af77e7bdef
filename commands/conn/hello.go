// AUTH [username] password authenticates the client. HELLO switches the protocol, and may
// authenticate and name the client.

package conn

import (
	"redlockd/commands"
	"redlockd/commands/access"
	"redlockd/commands/arg"
)

var helloNeedsAuth = commands.Error("NOAUTH", "HELLO must be called with the client already authenticated, otherwise the HELLO AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time")

type greeting struct {
	auth     bool
	user     string
	password string
	setsName bool
	name     string
}

// hello answers a map of what this server is, in the protocol it has switched
// to: the encoder follows Client.Proto. Nothing is changed by a HELLO that fails.
func (h *handlers) hello(c *commands.Call) error {
	version, versioned := int64(0), len(c.Args) > 1
	if versioned {
		var ok bool
		if version, ok = arg.ParseInteger(c.Args[1]); !ok {
			return commands.RedisText("Protocol version is not an integer or out of range")
		}
		if version < 2 || version > 3 {
			return c.Reply(commands.Error("NOPROTO", "unsupported protocol version"))
		}
	}
	wish, err := readGreeting(c)
	if err != nil {
		return err
	}
	if wish.auth && !c.SignIn(wish.user, wish.password) {
		return nil
	}
	if !c.Authenticated() {
		return c.Reply(helloNeedsAuth)
	}
	if versioned {
		c.Client.Proto = int(version)
	}
	if wish.setsName {
		c.Client.Name = wish.name
	}
	return c.Reply(h.introduction(c.Client))
}

// readGreeting reads what follows the version: AUTH user password, SETNAME name.
func readGreeting(c *commands.Call) (greeting, error) {
	var wish greeting
	for i := 2; i < len(c.Args); i++ {
		left := len(c.Args) - 1 - i
		switch {
		case arg.IsWord(c.Args[i], "AUTH") && left >= 2:
			wish.auth, wish.user, wish.password = true, c.Args[i+1], c.Args[i+2]
			i += 2
		case arg.IsWord(c.Args[i], "SETNAME") && left >= 1:
			name, err := clientName(c.Args[i+1])
			if err != nil {
				return wish, err
			}
			wish.setsName, wish.name = true, name
			i++
		default:
			return wish, commands.RedisText("Syntax error in HELLO option '" + commands.Clip(c.Args[i], commands.ShownBytes) + "'")
		}
	}
	return wish, nil
}

// introduction has the seven fields that client libraries read; lettuce and
// redis-cli insist on strings, and on an integer for proto and id.
func (h *handlers) introduction(client *commands.Client) commands.Reply {
	return commands.Map(
		commands.Bulk("server"), commands.Bulk("redis"),
		commands.Bulk("version"), commands.Bulk(advertisedVersion),
		commands.Bulk("proto"), commands.Int(int64(client.Proto)),
		commands.Bulk("id"), commands.Int(client.ID),
		commands.Bulk("mode"), commands.Bulk(clusterNode(h.deps.Cluster).mode()),
		commands.Bulk("role"), commands.Bulk("master"),
		commands.Bulk("modules"), commands.Array(),
	)
}

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
