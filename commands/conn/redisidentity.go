// Commands by which a client finds out which kind of Redis it has connected to. The
// answers are those of a standalone master without replicas and without data.

package conn

import (
	"redlockd/commands"
	"redlockd/commands/arg"
	"strconv"
	"time"
)

func (h *handlers) role(c *commands.Call) error {
	c.Reply(commands.Array(commands.Bulk("master"), commands.Int(0), commands.Array()))
	return nil
}

// clock answers TIME: seconds and microseconds of this machine's wall clock.
// No lock depends on it.
func (h *handlers) clock(c *commands.Call) error {
	now := time.Now().UnixMicro()
	c.Reply(commands.Array(
		commands.Bulk(strconv.FormatInt(now/1e6, 10)),
		commands.Bulk(strconv.FormatInt(now%1e6, 10)),
	))
	return nil
}

// wait answers how many replicas have acknowledged earlier writes: there are
// none, and waiting for them would not change it.
func (h *handlers) wait(c *commands.Call) error {
	if _, ok := arg.ParseInteger(c.Args[1]); !ok {
		return commands.RedisText("value is not an integer or out of range")
	}
	timeout, ok := arg.ParseInteger(c.Args[2])
	if !ok {
		return commands.RedisText("timeout is not an integer or out of range")
	}
	if timeout < 0 {
		return commands.RedisText("timeout is negative")
	}
	c.Reply(commands.Int(0))
	return nil
}

// dbsize: the daemon itself keeps no keys.
func (h *handlers) dbsize(c *commands.Call) error {
	c.Reply(commands.Int(0))
	return nil
}

// accepted serves READONLY and READWRITE.
func (h *handlers) accepted(c *commands.Call) error {
	c.Reply(commands.OK)
	return nil
}

// cluster refuses in the words by which rueidis recognises a server that is
// not a cluster; any other text ends its connection.
func (h *handlers) cluster(c *commands.Call) error {
	return commands.RedisText("This instance has cluster support disabled")
}
