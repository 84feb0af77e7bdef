// Commands by which a client finds out which kind of Redis it has connected to. The
// answers are those of a standalone master without replicas and without data.

package conn

import (
	"strconv"
	"time"

	"redlockd/commands"
	"redlockd/commands/arg"
	"redlockd/redlock/slots"
)

// advertisedVersion is the Redis version that clients see. Below 6 some
// do not use HELLO; from 8.4 on StackExchange.Redis replaces its
// transactions around a lock by DELEX and SET IFEQ.
const advertisedVersion = "8.4.0"

// clusterNode is this daemon with the others; nil: it is no node of a cluster.
type clusterNode func() slots.Division

// mode is the kind of Redis that clients see.
func (n clusterNode) mode() string {
	if n != nil {
		return "cluster"
	}
	return "standalone"
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
	return c.Reply(commands.Int(0))
}

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
	return c.Reply(commands.Map(items...))
}
