// Commands about the connection itself: PING, ECHO, QUIT, RESET and SELECT.

package conn

import (
	"fmt"
	"math"
	"strings"

	"redlockd/commands"
	"redlockd/commands/arg"
)

// ping answers PONG, or the message; to a subscriber on RESP2 in the shape of a
// message, since it reads nothing else.
func (h *handlers) ping(c *commands.Call) error {
	switch {
	case c.Client.Subscribed() && c.Client.Proto < 3:
		c.Reply(commands.Array(commands.Bulk("pong"), commands.Bulk(strings.Join(c.Args[1:], ""))))
	case len(c.Args) == 1:
		c.Reply(commands.Simple("PONG"))
	default:
		c.Reply(commands.Bulk(c.Args[1]))
	}
	return nil
}

func (h *handlers) echo(c *commands.Call) error {
	return c.Reply(commands.Bulk(c.Args[1]))
}

// quit closes the connection behind this reply.
func (h *handlers) quit(c *commands.Call) error {
	c.Client.Closing = true
	return c.Reply(commands.OK)
}

// reset makes the connection as good as new, for pools that hand it on. The
// locks it took stay, but the next user must not release them by accident, nor
// be taken for the one before.
func (h *handlers) reset(c *commands.Call) error {
	c.Client.DB = 0
	c.Client.Proto = 2
	c.Client.Name = ""
	c.SignOut()
	c.Client.ReplyMode = commands.ReplyOn
	c.Client.Channels, c.Client.Patterns = commands.Subscriptions{}, commands.Subscriptions{}
	h.channels.unsubscribeAll(c.Client)
	endTracking(c.Client)
	c.Client.LastAcquired.HandOn()
	return c.Reply(commands.Simple("RESET"))
}

func (h *handlers) selectDatabase(c *commands.Call) error {
	db, ok := arg.ParseInteger(c.Args[1])
	switch {
	case !ok:
		return commands.RedisText("value is not an integer or out of range")
	case db < math.MinInt32 || db > math.MaxInt32:
		return commands.RedisText(fmt.Sprintf("value is out of range, value must between %d and %d", math.MinInt32, math.MaxInt32))
	case db < 0 || db >= int64(h.deps.Databases):
		return commands.RedisText("DB index is out of range")
	}
	c.Client.DB = int(db)
	return c.Reply(commands.OK)
}
