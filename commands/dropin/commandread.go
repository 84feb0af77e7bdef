// The commands that read a key: GET, EXISTS, TTL and PTTL.

package dropin

func (c *commandCall) get() []branch {
	key, ok := c.lock(0)
	if !ok {
		return nil
	}
	if c.path.keys[key].content == contentToken {
		return c.one(c.path, luaValue{kind: valueArg, arg: c.tokens[key]})
	}
	free, held := c.path.splitFree(key)
	return twoBranches(free, boolValue(false), held, luaValue{kind: valueHeld, key: key})
}

func (c *commandCall) exists() []branch {
	return c.countKeys(func(p *path, key int) (yes, no *path) {
		no, yes = p.splitFree(key)
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
		return c.one(c.path, luaValue{kind: valueUnknown})
	}
	left := luaValue{kind: valueRemainingMS, key: key}
	if c.name == "ttl" {
		left.kind = valueRemainingS
	}
	free, held := c.path.splitFree(key)
	out := twoBranches(free, numberValue(-2), nil, luaValue{})
	if held != nil {
		timed, endless := held.split(key, timedStates)
		out = append(out, twoBranches(timed, left, endless, numberValue(-1))...)
	}
	return out
}
