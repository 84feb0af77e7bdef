// SUBSCRIBE and its family: confirmed as Redis does, because libraries wait for
// the confirmation. Nothing is published yet, so a subscriber hears nothing.
package commands

import (
	"fmt"
	"slices"
	"strings"
)

const (
	// mostChannels bounds what one connection may subscribe to.
	mostChannels = 1024
	// longestChannel is as a lock's name with the prefix of its channel.
	longestChannel = 1024
)

// listening tells whether the connection is a subscriber.
func (c *Client) listening() bool { return len(c.Channels)+len(c.Patterns) > 0 }

// onlyListening refuses what a subscriber on RESP2 cannot say: its replies
// could not be told from messages.
func onlyListening(row *command) Reply {
	return Error("ERR", "Can't execute '"+row.full+"': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context")
}

func (t *Table) subscribe(c *Call) error { return subscribeTo(c, &c.Client.Channels) }

func (t *Table) psubscribe(c *Call) error { return subscribeTo(c, &c.Client.Patterns) }

func (t *Table) unsubscribe(c *Call) error { return unsubscribeFrom(c, &c.Client.Channels) }

func (t *Table) punsubscribe(c *Call) error { return unsubscribeFrom(c, &c.Client.Patterns) }

// publish answers how many have heard it: none.
func (t *Table) publish(c *Call) error {
	c.Reply(Int(0))
	return nil
}

// subscribeTo answers one confirmation for each name, or refuses all of them.
func subscribeTo(c *Call, list *[]string) error {
	for _, name := range c.Args[1:] {
		if len(name) > longestChannel {
			return fmt.Errorf("channel of %d bytes, allowed are 0 to %d", len(name), longestChannel)
		}
	}
	if count := len(c.Client.Channels) + len(c.Client.Patterns) + len(c.Args) - 1; count > mostChannels {
		return fmt.Errorf("%d subscriptions on one connection, allowed are %d", count, mostChannels)
	}
	confirmed := make([]Reply, 0, len(c.Args)-1)
	for _, name := range c.Args[1:] {
		if !slices.Contains(*list, name) {
			*list = append(*list, strings.Clone(name))
		}
		confirmed = append(confirmed, c.confirm(Bulk(name)))
	}
	c.Reply(Each(confirmed...))
	return nil
}

// unsubscribeFrom answers one confirmation for each name, of all that there are
// if none is given, and of nil if there are none either.
func unsubscribeFrom(c *Call, list *[]string) error {
	names := c.Args[1:]
	if len(names) == 0 {
		names = slices.Clone(*list)
	}
	if len(names) == 0 {
		c.Reply(c.confirm(Nil))
		return nil
	}
	confirmed := make([]Reply, 0, len(names))
	for _, name := range names {
		*list = slices.DeleteFunc(*list, func(s string) bool { return s == name })
		confirmed = append(confirmed, c.confirm(Bulk(name)))
	}
	c.Reply(Each(confirmed...))
	return nil
}

// confirm is [kind, channel, subscriptions left]; a push in RESP3.
func (c *Call) confirm(channel Reply) Reply {
	count := len(c.Client.Channels) + len(c.Client.Patterns)
	return Reply{Kind: KindPush, Items: []Reply{Bulk(strings.ToLower(c.Args[0])), channel, Int(int64(count))}}
}
