// Commands by which a client finds out which kind of Redis it has connected to. The
// answers are those of a standalone master without replicas and without data.

package commands

import (
	"strconv"
	"time"
)

func (t *Table) role(c *Call) error {
	c.Reply(Array(Bulk("master"), Int(0), Array()))
	return nil
}

// clock answers TIME: seconds and microseconds of this machine's wall clock.
// No lock depends on it.
func (t *Table) clock(c *Call) error {
	now := time.Now().UnixMicro()
	c.Reply(Array(
		Bulk(strconv.FormatInt(now/1e6, 10)),
		Bulk(strconv.FormatInt(now%1e6, 10)),
	))
	return nil
}

// wait answers how many replicas have acknowledged earlier writes: there are
// none, and waiting for them would not change it.
func (t *Table) wait(c *Call) error {
	if _, ok := parseInteger(c.Args[1]); !ok {
		return redisText("value is not an integer or out of range")
	}
	timeout, ok := parseInteger(c.Args[2])
	if !ok {
		return redisText("timeout is not an integer or out of range")
	}
	if timeout < 0 {
		return redisText("timeout is negative")
	}
	c.Reply(Int(0))
	return nil
}

// dbsize: the daemon itself keeps no keys.
func (t *Table) dbsize(c *Call) error {
	c.Reply(Int(0))
	return nil
}

// accepted serves READONLY and READWRITE.
func (t *Table) accepted(c *Call) error {
	c.Reply(OK)
	return nil
}

// cluster refuses in the words by which rueidis recognises a server that is
// not a cluster; any other text ends its connection.
func (t *Table) cluster(c *Call) error {
	return redisText("This instance has cluster support disabled")
}
