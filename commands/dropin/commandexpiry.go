// The commands that give a key an expiry: EXPIRE, PEXPIRE, EXPIREAT and PEXPIREAT.

package dropin

// expiry is the meaning of a time. A script has one time argument, in one unit.
func (c *commandCall) expiry(key int, v luaValue, unit Unit) (source expirySource, fixed int64, ok bool) {
	if n, ok := parseInt(v.text); ok && v.kind == valueText && n <= maxNumber && n >= -maxNumber {
		v = numberValue(n)
	}
	from := Time{Arg: v.arg + 1, Unit: unit}
	switch {
	case v.is(valueArg, valueArgNumber):
		source = expiryFromArg
	case v.kind == valueExtended && v.key == key && unit == Milliseconds && c.name == "pexpire":
		source = expiryAdded
	case v.kind == valueNumber && (unit == Milliseconds || unit == Seconds):
		if source, fixed = expiryFixed, v.n; unit == Seconds {
			fixed *= 1000
		}
		from = Time{Unit: FixedMilliseconds, Fixed: fixed}
		if fixed <= 0 {
			return source, fixed, true
		}
	default:
		c.refuse(c.line, "it gives an expiry that is neither an argument, nor an argument and what is left, nor a number of its own")
		return 0, 0, false
	}
	if c.time.Unit == NoTime {
		c.evaluator.time = from
	}
	if c.time != from {
		c.refuse(c.line, "it does not always give the expiry that it is asked for")
		return 0, 0, false
	}
	return source, fixed, true
}

var expireUnits = map[string]Unit{"pexpire": Milliseconds, "expire": Seconds, "pexpireat": UnixMilliseconds, "expireat": UnixSeconds}

func (c *commandCall) expire() []branch {
	key, ok := c.key(0)
	if !ok {
		return nil
	}
	if c.signals[key] {
		return c.expireSignal()
	}
	source, fixed, ok := c.expiry(key, c.args[1], expireUnits[c.name])
	if !ok {
		return nil
	}
	free, held := c.path.splitFree(key)
	switch {
	case held == nil:
	case source == expiryFixed && fixed <= 0:
		held.remove(key)
	default:
		held.keys[key].expiry, held.keys[key].fixed = source, fixed
	}
	return twoBranches(free, numberValue(0), held, numberValue(1))
}

// expireSignal follows the expiry of a list, which is no lease.
func (c *commandCall) expireSignal() []branch {
	switch v := c.args[1]; v.kind {
	case valueArg, valueArgNumber:
		c.numbers[v.arg] = true
	case valueNumber:
	default:
		c.refuse(c.line, "it gives a list an expiry that is neither an argument nor a number of its own")
	}
	return c.one(c.path, luaValue{kind: valueUnknown})
}
