// SUBSCRIBE and its family, as Redis has them. Who listens on channel
// dlock:<key> hears what happens to the lock (channels.go), as do registries of Spring
// Integration (unlockchannel.go); on others nothing ever does, and they are confirmed
// because libraries wait for that.
package commands

import (
	"fmt"
	"slices"
	"strings"
)

const (
	// mostChannels bounds what one connection may subscribe to.
	mostChannels = 1024
	// mostPatterns is less: each has a table of 2 kB, and every event is held
	// against all that are different.
	mostPatterns = 128
	// longestChannel is as a lock's name with the prefix of its channel.
	longestChannel = 1024
)

// notThisChannel is what Redis says.
var notThisChannel = Error("NOPERM", "this user has no permissions to access one of the channels used as arguments")

// listening tells whether the connection is a subscriber.
func (c *Client) listening() bool { return len(c.Channels)+len(c.Patterns) > 0 }

// onlyListening refuses what a subscriber on RESP2 cannot say: its replies
// could not be told from messages.
func onlyListening(row *command) Reply {
	return Error("ERR", "Can't execute '"+row.full+"': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context")
}

func (t *Table) subscribe(c *Call) error {
	if err := boundSubscriptions(c, len(c.Client.Channels), mostChannels); err != nil {
		return err
	}
	if !t.mayListen(c.Client, c.Args[1:]) {
		c.Reply(notThisChannel)
		return nil
	}
	t.channels.enter(c.Client, c.Args[1:], nil)
	confirmEach(c, &c.Client.Channels)
	return nil
}

// psubscribe may name any pattern: what it covers is told as far as the user
// may use the key.
func (t *Table) psubscribe(c *Call) error {
	if err := boundSubscriptions(c, len(c.Client.Patterns), mostPatterns); err != nil {
		return err
	}
	patterns, err := readPatterns(c.Args[1:])
	if err != nil {
		return err
	}
	t.channels.enter(c.Client, nil, patterns)
	confirmEach(c, &c.Client.Patterns)
	return nil
}

func (t *Table) unsubscribe(c *Call) error {
	names := orAll(c, c.Client.Channels)
	t.channels.exit(c.Client, names, nil)
	return unsubscribeFrom(c, names, &c.Client.Channels)
}

func (t *Table) punsubscribe(c *Call) error {
	names := orAll(c, c.Client.Patterns)
	t.channels.exit(c.Client, nil, names)
	return unsubscribeFrom(c, names, &c.Client.Patterns)
}

// publish answers how many have heard it: none. Events are the daemon's own.
func (t *Table) publish(c *Call) error {
	c.Reply(Int(0))
	return nil
}

// boundSubscriptions refuses all of them, or none.
func boundSubscriptions(c *Call, already, most int) error {
	for _, name := range c.Args[1:] {
		if len(name) > longestChannel {
			return fmt.Errorf("channel of %d bytes, allowed are 0 to %d", len(name), longestChannel)
		}
	}
	if count := already + len(c.Args) - 1; count > most {
		return fmt.Errorf("%d subscriptions on one connection, allowed are %d", count, most)
	}
	return nil
}

// confirmEach answers one confirmation for each name.
func confirmEach(c *Call, list *[]string) {
	confirmed := make([]Reply, 0, len(c.Args)-1)
	for _, name := range c.Args[1:] {
		if !slices.Contains(*list, name) {
			*list = append(*list, strings.Clone(name))
		}
		confirmed = append(confirmed, c.confirm(Bulk(name)))
	}
	c.Reply(Each(confirmed...))
}

// orAll are the names that are given, or all that there are.
func orAll(c *Call, list []string) []string {
	if len(c.Args) > 1 {
		return c.Args[1:]
	}
	return slices.Clone(list)
}

// unsubscribeFrom answers one confirmation for each name, and of nil if there
// are none.
func unsubscribeFrom(c *Call, names []string, list *[]string) error {
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
