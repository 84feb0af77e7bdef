// HELLO and AUTH: which protocol, and who is there?
package commands

// defaultUser is the user that every connection is; it has no password.
const defaultUser = "default"

// greeting is what a HELLO asks for.
type greeting struct {
	auth     bool
	user     string
	setsName bool
	name     string
}

// hello answers a map of what this server is, in the protocol it has switched
// to: the encoder follows Client.Proto. Nothing is changed by a HELLO that fails.
func (t *Table) hello(c *Call) error {
	version, asked := int64(0), len(c.Args) > 1
	if asked {
		var ok bool
		if version, ok = parseInteger(c.Args[1]); !ok {
			return redisText("Protocol version is not an integer or out of range")
		}
		if version < 2 || version > 3 {
			c.Reply(Error("NOPROTO", "unsupported protocol version"))
			return nil
		}
	}
	wish, err := readGreeting(c)
	if err != nil {
		return err
	}
	if wish.auth && wish.user != defaultUser {
		c.Reply(wrongPassword)
		return nil
	}
	if asked {
		c.Client.Proto = int(version)
	}
	if wish.setsName {
		c.Client.Name = wish.name
	}
	c.Reply(t.introduction(c.Client))
	return nil
}

// readGreeting reads what follows the version: AUTH user password, SETNAME name.
func readGreeting(c *Call) (greeting, error) {
	var wish greeting
	for i := 2; i < len(c.Args); i++ {
		left := len(c.Args) - 1 - i
		switch {
		case isWord(c.Args[i], "AUTH") && left >= 2:
			wish.auth, wish.user = true, c.Args[i+1]
			i += 2
		case isWord(c.Args[i], "SETNAME") && left >= 1:
			name, err := clientName(c.Args[i+1])
			if err != nil {
				return wish, err
			}
			wish.setsName, wish.name = true, name
			i++
		default:
			return wish, redisText("Syntax error in HELLO option '" + clip(c.Args[i], shownBytes) + "'")
		}
	}
	return wish, nil
}

// introduction has the seven fields that client libraries read; lettuce and
// redis-cli insist on strings, and on an integer for proto and id.
func (t *Table) introduction(client *Client) Reply {
	return Map(
		Bulk("server"), Bulk("redis"),
		Bulk("version"), Bulk(advertisedVersion),
		Bulk("proto"), Int(int64(client.Proto)),
		Bulk("id"), Int(client.ID),
		Bulk("mode"), Bulk("standalone"),
		Bulk("role"), Bulk("master"),
		Bulk("modules"), Array(),
	)
}

var wrongPassword = Error("WRONGPASS", "invalid username-password pair or user is disabled.")

// auth speaks for a server without a password: the texts are those of Redis,
// because ioredis turns exactly the first into a warning.
func (t *Table) auth(c *Call) error {
	switch {
	case len(c.Args) == 2:
		return redisText("AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?")
	case len(c.Args) > 3:
		return redisText("syntax error")
	case c.Args[1] != defaultUser:
		c.Reply(wrongPassword)
	default:
		c.Reply(OK)
	}
	return nil
}
