// CLIENT subcommands by which a client library describes itself. Subcommands that
// are not here are errors on purpose: a library that receives OK relies on it.

package conn

import (
	"fmt"
	"strings"

	"redlockd/commands"
	"redlockd/commands/access"
	"redlockd/commands/arg"
)

const maxClientName = 256

// changesClient makes those subcommands run alone whose effect others see: another
// connection's CLIENT LIST, and the answers behind.
func changesClient(args []string) bool {
	return len(args) > 1 && (arg.IsWord(args[1], "SETNAME") || arg.IsWord(args[1], "SETINFO") || arg.IsWord(args[1], "REPLY") || arg.IsWord(args[1], "TRACKING"))
}

// ownText checks a text and makes it the connection's own, so that it does not keep the
// buffer of its command alive.
func ownText(what, s string) (string, error) {
	if !access.Printable(s) {
		return "", commands.RedisText(what + " cannot contain spaces, newlines or special characters.")
	}
	if len(s) > maxClientName {
		return "", fmt.Errorf("%s of %d bytes, allowed are 0 to %d", what, len(s), maxClientName)
	}
	return strings.Clone(s), nil
}

// clientName is a name of the connection. Redis has a text of its own for its first check.
func clientName(s string) (string, error) {
	if !access.Printable(s) {
		return "", commands.RedisText("Client names cannot contain spaces, newlines or special characters.")
	}
	return ownText("client name", s)
}

func (h *handlers) clientSetName(c *commands.Call) error {
	name, err := clientName(c.Args[2])
	if err != nil {
		return err
	}
	c.Client.Name = name
	return c.Reply(commands.OK)
}

// clientGetName answers nil as long as there is no name.
func (h *handlers) clientGetName(c *commands.Call) error {
	if c.Client.Name == "" {
		return c.Reply(commands.Nil)
	}
	return c.Reply(commands.Bulk(c.Client.Name))
}

// clientSetInfo keeps the library's name and version, for people.
func (h *handlers) clientSetInfo(c *commands.Call) error {
	attribute, value := c.Args[2], c.Args[3]
	field := &c.Client.LibName
	switch {
	case arg.IsWord(attribute, "LIB-NAME"):
	case arg.IsWord(attribute, "LIB-VER"):
		field = &c.Client.LibVer
	default:
		return commands.RedisText("Unrecognized option '" + commands.Clip(attribute, commands.ShownBytes) + "'")
	}
	text, err := ownText(strings.ToLower(attribute), value)
	if err != nil {
		return err
	}
	*field = text
	return c.Reply(commands.OK)
}

func (h *handlers) clientID(c *commands.Call) error {
	return c.Reply(commands.Int(c.Client.ID))
}

// clientInfo answers one line: the fields that are known here, and unmeasured.
func (h *handlers) clientInfo(c *commands.Call) error {
	return c.Reply(commands.Bulk(describe(c.Client.Describe(), "client|info") + "\n"))
}

// clientSwitch serves NO-EVICT and NO-TOUCH: nothing is ever evicted here, so
// both settings are already true.
func (h *handlers) clientSwitch(c *commands.Call) error {
	if !arg.IsWord(c.Args[2], "ON") && !arg.IsWord(c.Args[2], "OFF") {
		return commands.RedisText("syntax error")
	}
	return c.Reply(commands.OK)
}
