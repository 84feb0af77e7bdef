// SUBSCRIBE and its family, as Redis has them. A subscriber of channel dlock:<key>
// receives the events of the lock (channels.go), as do registries of Spring Integration and
// clients of Redisson (librarychannels.go). Other channels never receive anything; they are
// confirmed because libraries wait for that, but for channels of keyspace events: a client that waits
// for those waits for a lock to become free.

package conn

import (
	"errors"
	"fmt"
	"strings"

	"redlockd/commands"
)

const (
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
var noChannelPermission = commands.Error("NOPERM", "this user has no permissions to access one of the channels used as arguments")

// errNoKeyspaceEvents refuses a confirmation after which nothing would ever come.
var errNoKeyspaceEvents = errors.New("redlockd sends no keyspace events, so this subscription would wait for ever; subscribe to dlock:key for the events of a lock (released, expired, forced), or wait with DLOCK key ttl WAIT ms")

func (h *handlers) subscribe(c *commands.Call) error {
	if err := h.boundSubscriptions(c, &c.Client.Channels); err != nil {
		return err
	}
	if !maySubscribe(c, c.Args[1:]) {
		return c.Reply(noChannelPermission)
	}
	names, confirmed := subscribeTo(c, &c.Client.Channels)
	h.channels.subscribe(c.Client, names, nil)
	return c.Reply(confirmed)
}

// psubscribe may name any pattern: the subscriber receives events of keys that its
// user may use.
func (h *handlers) psubscribe(c *commands.Call) error {
	if count := c.Client.Patterns.Len() + len(c.Args) - 1; count > maxPatterns {
		return fmt.Errorf("%d subscriptions on one connection, allowed are %d", count, maxPatterns)
	}
	if err := h.boundSubscriptions(c, &c.Client.Patterns); err != nil {
		return err
	}
	patterns, err := readPatterns(c.Args[1:])
	if err != nil {
		return err
	}
	names, confirmed := subscribeTo(c, &c.Client.Patterns)
	for i := range patterns {
		patterns[i].Text = names[i]
	}
	h.channels.subscribe(c.Client, nil, patterns)
	return c.Reply(confirmed)
}

func (h *handlers) unsubscribe(c *commands.Call) error {
	return h.endSubscriptions(c, toChannel, &c.Client.Channels)
}

func (h *handlers) punsubscribe(c *commands.Call) error {
	return h.endSubscriptions(c, toPattern, &c.Client.Patterns)
}

// endSubscriptions ends those that are named, else all. It answers one confirmation for
// each, and of nil if there are none.
func (h *handlers) endSubscriptions(c *commands.Call, of kind, list *commands.Subscriptions) error {
	names := c.Args[1:]
	if len(names) == 0 {
		names = list.InOrder()
	}
	if len(names) == 0 {
		return c.Reply(confirm(c, commands.Nil))
	}
	h.channels.unsubscribe(c.Client, of, names)
	confirmed := make([]commands.Reply, len(names))
	for i, name := range names {
		list.Remove(name)
		confirmed[i] = confirm(c, commands.Bulk(name))
	}
	return c.Reply(commands.Each(confirmed...))
}

// boundSubscriptions refuses all of them, or none.
func (h *handlers) boundSubscriptions(c *commands.Call, list *commands.Subscriptions) error {
	bytes := c.Client.Channels.Bytes + c.Client.Patterns.Bytes
	for _, name := range c.Args[1:] {
		if len(name) > maxChannelBytes {
			return fmt.Errorf("channel of %d bytes, allowed are 0 to %d", len(name), maxChannelBytes)
		}
		if ofKeyspace(name, list == &c.Client.Patterns) {
			return errNoKeyspaceEvents
		}
		if !list.Has(name) {
			bytes += len(name)
		}
	}
	most := h.deps.MaxSubscriptions
	if count := c.Client.Subscriptions() + len(c.Args) - 1; count > most {
		return fmt.Errorf("%d subscriptions on one connection, allowed are %d (--max-subscriptions)", count, most)
	}
	if allowed := max(maxChannelBytes, most*bytesPerSubscription); bytes > allowed {
		return fmt.Errorf("names of %d bytes in the subscriptions of one connection, allowed are %d (%d for each of --max-subscriptions)", bytes, allowed, bytesPerSubscription)
	}
	return nil
}

// ofKeyspace reports whether a name is that of keyspace events, __keyspace@0__:k or __keyevent@0__:expired, or a pattern
// for them alone: __key*__:*, __*, *keyevent@0__:*.
func ofKeyspace(name string, isPattern bool) bool {
	const events = "__key"
	if strings.HasPrefix(name, events) || !isPattern {
		return strings.HasPrefix(name, events)
	}
	if fixed := strings.IndexAny(name, "*?[\\"); fixed > 0 {
		return strings.HasPrefix(events, name[:fixed])
	}
	return strings.Contains(name, "keyspace@") || strings.Contains(name, "keyevent@")
}

// subscribeTo notes the names; it returns the connection's own copies of them and
// one confirmation for each.
func subscribeTo(c *commands.Call, list *commands.Subscriptions) (names []string, confirmed commands.Reply) {
	items := make([]commands.Reply, 0, len(c.Args)-1)
	for _, name := range c.Args[1:] {
		names = append(names, list.Add(name))
		items = append(items, confirm(c, commands.Bulk(name)))
	}
	return names, commands.Each(items...)
}

// confirm is [kind, channel, subscriptions left]; a push in RESP3.
func confirm(c *commands.Call, channel commands.Reply) commands.Reply {
	return commands.Reply{Kind: commands.KindPush, Items: []commands.Reply{commands.Bulk(strings.ToLower(c.Args[0])), channel, commands.Int(int64(c.Client.Subscriptions()))}}
}
