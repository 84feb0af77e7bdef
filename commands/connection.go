// Commands about the connection itself: PING, ECHO, QUIT, RESET and SELECT.

package commands

import (
	"fmt"
	"math"
	"strings"
)

// ping answers PONG, or the message; to a subscriber on RESP2 in the shape of a
// message, since it reads nothing else.
func (t *Table) ping(c *Call) error {
	switch {
	case c.Client.subscribed() && c.Client.Proto < 3:
		c.Reply(Array(Bulk("pong"), Bulk(strings.Join(c.Args[1:], ""))))
	case len(c.Args) == 1:
		c.Reply(Simple("PONG"))
	default:
		c.Reply(Bulk(c.Args[1]))
	}
	return nil
}

// echo answers its argument, byte for byte.
func (t *Table) echo(c *Call) error {
	c.Reply(Bulk(c.Args[1]))
	return nil
}

// quit closes the connection behind this reply.
func (t *Table) quit(c *Call) error {
	c.Client.Closing = true
	c.Reply(OK)
	return nil
}

// reset makes the connection as good as new, for pools that hand it on. The
// locks it took stay, but the next user must not release them by accident, nor
// be taken for the one before.
func (t *Table) reset(c *Call) error {
	c.Client.DB = 0
	c.Client.Proto = 2
	c.Client.Name = ""
	c.SignOut()
	c.Client.ReplyMode = ReplyOn
	t.forgetChannels(c.Client)
	c.Client.LastAcquired.Clear()
	c.Reply(Simple("RESET"))
	return nil
}

// selectDatabase moves the connection to another database of the masters.
func (t *Table) selectDatabase(c *Call) error {
	db, ok := parseInteger(c.Args[1])
	switch {
	case !ok:
		return redisText("value is not an integer or out of range")
	case db < math.MinInt32 || db > math.MaxInt32:
		return redisText(fmt.Sprintf("value is out of range, value must between %d and %d", math.MinInt32, math.MaxInt32))
	case db < 0 || db >= int64(t.deps.Databases):
		return redisText("DB index is out of range")
	}
	c.Client.DB = int(db)
	c.Reply(OK)
	return nil
}
