// SUBSCRIBE and its family, as Redis has them. A subscriber of channel dlock:<key>
// receives the events of the lock (channels.go), as do registries of Spring
// Integration (springchannel.go). Other channels never receive anything; they are
// confirmed because libraries wait for that.

package commands

import (
	"fmt"
	"strings"
)

const (
	// defaultSubscriptions is Deps.MaxSubscriptions where it is not set.
	defaultSubscriptions = 1024
	// bytesPerSubscription bounds the names of a connection's subscriptions together:
	// so many bytes for each that it may have.
	bytesPerSubscription = 64
	// maxPatterns is less: each has a table of 2 kB, and every event is matched
	// against all that are different.
	maxPatterns = 128
	// maxChannelBytes is as a lock's name with the prefix of its channel.
	maxChannelBytes = 1024
)

// noChannelPermission is the text of Redis.
var noChannelPermission = Error("NOPERM", "this user has no permissions to access one of the channels used as arguments")

func (t *Table) subscribe(c *Call) error {
	if err := t.boundSubscriptions(c, &c.Client.channels); err != nil {
		return err
	}
	if !maySubscribe(c, c.Args[1:]) {
		c.Reply(noChannelPermission)
		return nil
	}
	names, confirmed := subscribeTo(c, &c.Client.channels)
	t.channels.subscribe(c.Client, names, nil)
	c.Reply(confirmed)
	return nil
}

// psubscribe may name any pattern: the subscriber receives events of keys that its
// user may use.
func (t *Table) psubscribe(c *Call) error {
	if count := len(c.Client.patterns.byName) + len(c.Args) - 1; count > maxPatterns {
		return fmt.Errorf("%d subscriptions on one connection, allowed are %d", count, maxPatterns)
	}
	if err := t.boundSubscriptions(c, &c.Client.patterns); err != nil {
		return err
	}
	patterns, err := readPatterns(c.Args[1:])
	if err != nil {
		return err
	}
	names, confirmed := subscribeTo(c, &c.Client.patterns)
	for i := range patterns {
		patterns[i].Text = names[i]
	}
	t.channels.subscribe(c.Client, nil, patterns)
	c.Reply(confirmed)
	return nil
}

func (t *Table) unsubscribe(c *Call) error {
	names := namesOrAll(c, &c.Client.channels)
	t.channels.unsubscribe(c.Client, names, nil)
	return unsubscribeFrom(c, names, &c.Client.channels)
}

func (t *Table) punsubscribe(c *Call) error {
	names := namesOrAll(c, &c.Client.patterns)
	t.channels.unsubscribe(c.Client, nil, names)
	return unsubscribeFrom(c, names, &c.Client.patterns)
}

// publish answers how many have received it: none. Events are the daemon's own.
func (t *Table) publish(c *Call) error {
	c.Reply(Int(0))
	return nil
}

// boundSubscriptions refuses all of them, or none.
func (t *Table) boundSubscriptions(c *Call, list *subscriptions) error {
	bytes := c.Client.channels.bytes + c.Client.patterns.bytes
	for _, name := range c.Args[1:] {
		if len(name) > maxChannelBytes {
			return fmt.Errorf("channel of %d bytes, allowed are 0 to %d", len(name), maxChannelBytes)
		}
		if _, again := list.byName[name]; !again {
			bytes += len(name)
		}
	}
	most := t.deps.MaxSubscriptions
	if count := c.Client.Subscriptions() + len(c.Args) - 1; count > most {
		return fmt.Errorf("%d subscriptions on one connection, allowed are %d (--max-subscriptions)", count, most)
	}
	if allowed := max(maxChannelBytes, most*bytesPerSubscription); bytes > allowed {
		return fmt.Errorf("names of %d bytes in the subscriptions of one connection, allowed are %d (%d for each of --max-subscriptions)", bytes, allowed, bytesPerSubscription)
	}
	return nil
}

// subscribeTo notes the names; it returns the connection's own copies of them and
// one confirmation for each.
func subscribeTo(c *Call, list *subscriptions) (names []string, confirmed Reply) {
	names = make([]string, 0, len(c.Args)-1)
	items := make([]Reply, 0, len(c.Args)-1)
	for _, name := range c.Args[1:] {
		name = list.add(name)
		names = append(names, name)
		items = append(items, c.confirm(Bulk(name)))
	}
	return names, Each(items...)
}

// namesOrAll are the names that are given, or all that there are.
func namesOrAll(c *Call, list *subscriptions) []string {
	if len(c.Args) > 1 {
		return c.Args[1:]
	}
	return list.inOrder()
}

// unsubscribeFrom answers one confirmation for each name, and of nil if there
// are none.
func unsubscribeFrom(c *Call, names []string, list *subscriptions) error {
	if len(names) == 0 {
		c.Reply(c.confirm(Nil))
		return nil
	}
	confirmed := make([]Reply, 0, len(names))
	for _, name := range names {
		list.remove(name)
		confirmed = append(confirmed, c.confirm(Bulk(name)))
	}
	c.Reply(Each(confirmed...))
	return nil
}

// confirm is [kind, channel, subscriptions left]; a push in RESP3.
func (c *Call) confirm(channel Reply) Reply {
	return Reply{Kind: KindPush, Items: []Reply{Bulk(strings.ToLower(c.Args[0])), channel, Int(int64(c.Client.Subscriptions()))}}
}
