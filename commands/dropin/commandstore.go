// The commands that store the token in a key: SET, SETNX, SETEX and PSETEX.

package dropin

// storesToken records that the command stores the n-th argument in the key: its token.
func (c *commandCall) storesToken(key, n int) bool {
	v := c.args[n]
	if v.kind == valueHeld && v.key == key && c.path.keys[key].before&^selfStates == 0 && c.tokens[key] >= 0 {
		return true // the key holds its token
	}
	if v.kind != valueArg {
		c.refuse(c.line, "it stores something that is not an argument as it is")
		return false
	}
	return c.token(c.line, key, v.arg)
}

// set follows SET with the options NX, XX, IFEQ token, EX, PX, EXAT and PXAT.
func (c *commandCall) set() []branch {
	key, ok := c.lock(0)
	if !ok || !c.storesToken(key, 1) {
		return nil
	}
	when, expiry, fixed := Always, expiryNone, int64(0)
	for i := 2; i < len(c.args); i++ {
		if c.args[i].kind != valueText {
			c.refuse(c.line, "an option of SET is not written in the script")
			return nil
		}
		name := upper(c.args[i].text)
		unit, timed := setUnits[name]
		condition, conditional := setConditions[name]
		valued := timed || name == "IFEQ"
		switch {
		case !timed && !conditional, conditional && when != Always, timed && expiry != expiryNone:
			c.refuse(c.line, "it calls SET with %s, or twice", short(c.args[i].text))
			return nil
		case valued && i+1 == len(c.args):
			c.refuse(c.line, "it gives %s no value", short(c.args[i].text))
			return nil
		case timed:
			if expiry, fixed, ok = c.expiry(key, c.args[i+1], unit); !ok {
				return nil
			}
			if expiry == expiryFixed && fixed <= 0 {
				c.refuse(c.line, "it calls SET with an expiry of %d ms", fixed)
				return nil
			}
		case conditional:
			when = condition
		}
		if name == "IFEQ" && (c.args[i+1].kind != valueArg || !c.token(c.line, key, c.args[i+1].arg)) {
			c.refuse(c.line, "it compares with something that is not its token")
			return nil
		}
		if valued {
			i++
		}
	}
	return c.storeWhen(key, when, expiry, fixed, luaValue{kind: valueStatus, text: "OK"}, boolValue(false))
}

var (
	setUnits      = map[string]Unit{"PX": Milliseconds, "EX": Seconds, "PXAT": UnixMilliseconds, "EXAT": UnixSeconds}
	setConditions = map[string]Condition{"NX": IfAbsent, "XX": IfPresent, "IFEQ": IfEqual}
)

func (c *commandCall) storeWhen(key int, when Condition, expiry expirySource, fixed int64, done, not luaValue) []branch {
	var yes, no *path
	switch when {
	case IfAbsent:
		yes, no = c.path.splitFree(key)
	case IfPresent:
		no, yes = c.path.splitFree(key)
	case IfEqual:
		yes, no = c.path.splitSelf(key)
	default:
		yes = c.path
	}
	if yes != nil {
		yes.store(key, expiry, fixed)
	}
	return twoBranches(yes, done, no, not)
}

func (c *commandCall) setNX() []branch {
	key, ok := c.lock(0)
	if !ok || !c.storesToken(key, 1) {
		return nil
	}
	return c.storeWhen(key, IfAbsent, expiryNone, 0, numberValue(1), numberValue(0))
}

func (c *commandCall) setEX() []branch {
	key, ok := c.lock(0)
	if !ok || !c.storesToken(key, 2) {
		return nil
	}
	unit := Seconds
	if c.name == "psetex" {
		unit = Milliseconds
	}
	expiry, fixed, ok := c.expiry(key, c.args[1], unit)
	if !ok {
		return nil
	}
	if expiry == expiryFixed && fixed <= 0 {
		c.refuse(c.line, "it gives an expiry of %d ms", fixed)
		return nil
	}
	return c.storeWhen(key, Always, expiry, fixed, luaValue{kind: valueStatus, text: "OK"}, luaValue{})
}
