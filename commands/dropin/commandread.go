// The commands that read a key: GET, EXISTS, TTL and PTTL.

package dropin

func (c *commandCall) get() []branch {
	key, ok := c.lock(0)
	if !ok {
		return nil
	}
	if c.path.keys[key].content == contentToken {
		return c.one(c.path, value{kind: valueArg, arg: c.tokens[key]})
	}
	free, held := c.path.absent(key)
	return replies(free, boolValue(false), held, value{kind: valueHeld, key: key})
}

func (c *commandCall) exists() []branch {
	return c.sum(func(p *path, key int) (yes, no *path) {
		no, yes = p.absent(key)
		return yes, no
	})
}

// remaining is TTL and PTTL.
func (c *commandCall) remaining() []branch {
	key, ok := c.lock(0)
	if !ok {
		return nil
	}
	if k := c.path.keys[key]; k.content == contentToken || k.expiry != expirySame {
		return c.one(c.path, value{kind: valueUnknown})
	}
	left := value{kind: valueLeft, key: key}
	if c.name == "ttl" {
		left.kind = valueLeftSeconds
	}
	free, held := c.path.absent(key)
	out := replies(free, numberValue(-2), nil, value{})
	if held != nil {
		timed, endless := held.split(key, timedStates)
		out = append(out, replies(timed, left, endless, numberValue(-1))...)
	}
	return out
}
