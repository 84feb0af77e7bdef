// The commands that wake waiters: LPUSH, RPUSH, PUBLISH and SPUBLISH.

package dropin

import "strings"

// push marks its key as a list, which wakes waiters.
func (c *commandCall) push() []branch {
	key, ok := c.key(0)
	if !ok {
		return nil
	}
	for _, v := range c.args[1:] {
		if !v.is(valueText, valueNumber, valueArg) {
			c.refuse(c.line, "it puts something into a list that is neither an argument nor its own")
			return nil
		}
	}
	if !c.signals[key] {
		c.signals[key], c.restart = true, true
		return nil
	}
	return c.one(c.path, luaValue{kind: valueUnknown})
}

// publish has an unknown result: the number of receivers differs between masters. The
// daemon checks the arguments of each call for its own channels.
func (c *commandCall) publish() []branch {
	channel, message := c.args[0], c.args[1]
	switch {
	case channel.kind == valueText && !strings.Contains(channel.text, reservedChannel), channel.is(valueArg, valueKey):
	default:
		c.refuse(c.line, "a channel is neither taken from KEYS or ARGV as it is nor written in the script, or is the daemon's own")
		return nil
	}
	if !message.is(valueText, valueNumber, valueArg, valueKey, valueJoined) {
		c.refuse(c.line, "it publishes something other than texts of its own, KEYS and ARGV")
		return nil
	}
	c.publishes = true
	return c.one(c.path, luaValue{kind: valueUnknown})
}

// reservedChannel is a part of the names of the daemons' own channels.
const reservedChannel = "redlockd:"
