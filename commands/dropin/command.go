// The commands that a script may call. Each is followed as Redis 7 runs it on a string key. A
// key must be an unchanged element of KEYS.

package dropin

import (
	"slices"
	"strings"
)

// evaluatedCommand is one command: the number of words after its name, and its behaviour.
type evaluatedCommand struct {
	minWords, maxWords int // without a maximum if it is 0
	run                func(c *commandCall) luaValue
}

// evaluatedCommands is the table of commands. It never changes.
var evaluatedCommands = map[string]evaluatedCommand{
	"get": {1, 1, (*commandCall).get}, "getdel": {1, 1, (*commandCall).getDel},
	"set": {2, 0, (*commandCall).set}, "setnx": {2, 2, (*commandCall).setNX},
	"setex": {3, 3, (*commandCall).setEX}, "psetex": {3, 3, (*commandCall).setEX},
	"del": {1, 0, (*commandCall).count}, "unlink": {1, 0, (*commandCall).count},
	"delex": {3, 3, (*commandCall).delIfEqual}, "delifeq": {2, 2, (*commandCall).delIfEqual},
	"exists": {1, 0, (*commandCall).count},
	"expire": {2, 3, (*commandCall).expire}, "pexpire": {2, 3, (*commandCall).expire},
	"expireat": {2, 3, (*commandCall).expire}, "pexpireat": {2, 3, (*commandCall).expire},
	"persist": {1, 1, (*commandCall).persist},
	"ttl":     {1, 1, (*commandCall).remaining}, "pttl": {1, 1, (*commandCall).remaining},
	"select": {1, 1, (*commandCall).selectDB},
}

// refusedCommands has the commands that lock scripts do call, with the reason.
var refusedCommands = map[string]string{
	"time":     "give a lease, not a point in time of the script's own",
	"publish":  "redlockd has no channels but those of its events: let waiters SUBSCRIBE dlock:<key>, which says when the lock is free",
	"spublish": "redlockd has no channels but those of its events: let waiters SUBSCRIBE dlock:<key>, which says when the lock is free",
	"incr":     "a counter beside the lock is not kept: DLOCK gives a fence, and LIMIT n counts holders",
	"hset":     "counts in a hash do not add up over masters: DLOCK has SHARED, LIMIT n and REENTRANT",
}

var expireUnits = map[string]Unit{
	"setex": Seconds, "psetex": Milliseconds,
	"expire": Seconds, "pexpire": Milliseconds, "expireat": UnixSeconds, "pexpireat": UnixMilliseconds,
}

type commandCall struct {
	*evaluation
	name string // in lower case
	args []luaValue
}

// command is redis.call or redis.pcall. words begins with the name of the command.
func (e *evaluation) command(words []luaValue) luaValue {
	name := strings.ToLower(words[0].text)
	c, known := evaluatedCommands[name]
	switch n := len(words) - 1; {
	case refusedCommands[name] != "":
		panic(e.refusal("it calls %s: %s", short(words[0].text), refusedCommands[name]))
	case !known:
		panic(e.refusal("it calls %s, which is no command on the string key of a lock", short(words[0].text)))
	case n < c.minWords || c.maxWords > 0 && n > c.maxWords:
		panic(e.refusal("it calls %s with %d arguments", short(words[0].text), n))
	}
	return c.run(&commandCall{e, name, words[1:]})
}

// key is the n-th argument of a command, an element of KEYS.
func (c *commandCall) key(n int) int {
	if c.args[n].kind != valueKey {
		panic(c.refusal("a key is not taken from KEYS as it is, and may be one that is not among KEYS"))
	}
	c.touch(c.args[n].key)
	return c.args[n].key
}

// lock is the first argument.
func (c *commandCall) lock() int { return c.key(0) }

// value is the n-th argument if it is an argument of the script as it is, or one of its keys that
// stands for a value.
func (c *commandCall) value(n int) (arg int, ok bool) {
	switch v := c.args[n]; v.kind {
	case valueArg, valueArgNumber:
		return v.arg, true
	case valueKey:
		return len(c.call.Args) + v.key, true
	}
	return 0, false
}

// comparesToken records that the command compares the key with its n-th argument: the token.
func (c *commandCall) comparesToken(key, n int) {
	arg, ok := c.value(n)
	if !ok {
		panic(c.refusal("it compares with something that is not its token"))
	}
	c.isToken(key, arg)
}

// storesToken records that the command stores the n-th argument in the key: its token.
func (c *commandCall) storesToken(key, n int) {
	v := c.args[n]
	if v.kind == valueHeld && v.key == key && c.path.keys[key].before&^selfStates == 0 && c.tokens[key] >= 0 {
		return // the key holds its token
	}
	arg, ok := c.value(n)
	if !ok || v.kind == valueArgNumber {
		panic(c.refusal("it stores something that is not an argument as it is"))
	}
	c.isToken(key, arg)
}

// expiry is the meaning of a time, with the ms of one that the script contains. A script has
// one time argument, in one unit.
func (c *commandCall) expiry(key, n int, unit Unit) (source expirySource, ms int64) {
	v := c.args[n]
	if n, ok := wholeNumber(v.text); ok && v.kind == valueText {
		v = numberValue(n)
	}
	arg, given := c.value(n)
	source, from := expiryGiven, Time{Arg: arg + 1, Unit: unit}
	switch {
	case given:
		if n, ok := wholeNumber(c.call.word(arg)); ok && n <= 0 && !unit.absolute() {
			c.look(arg)
			return expiryOver, n
		}
	case v.kind == valueExtended && v.key == key && v.unit == unit && (c.name == "pexpire" || c.name == "expire"):
		source, from.Arg = expiryAdded, v.arg+1
	case v.kind == valueNumber && (unit == Milliseconds || unit == Seconds):
		if ms = v.n; unit == Seconds {
			ms *= 1000
		}
		if ms <= 0 {
			return expiryOver, ms
		}
		from = Time{Unit: FixedMilliseconds, Fixed: ms}
	default:
		panic(c.refusal("it gives an expiry that is neither an argument, nor an argument and what is left, nor a number of its own"))
	}
	if c.time.Unit == NoTime {
		c.time = from
	}
	if c.time != from {
		panic(c.refusal("it does not always give the expiry that it is asked for"))
	}
	return source, ms
}

func (c *commandCall) get() luaValue {
	key := c.lock()
	c.typed = true
	switch {
	case c.path.keys[key].content == contentToken:
		return luaValue{kind: valueArg, arg: c.tokens[key]}
	case c.free(key):
		return boolValue(false)
	}
	return luaValue{kind: valueHeld, key: key}
}

func (c *commandCall) getDel() luaValue {
	v := c.get()
	if v.kind != valueFalse {
		c.remove(c.args[0].key)
	}
	return v
}

// remaining is TTL and PTTL.
func (c *commandCall) remaining() luaValue {
	key := c.lock()
	k := c.path.keys[key]
	switch {
	case k.content == contentToken || k.expiry != expirySame:
		return luaValue{kind: valueUnknown}
	case c.free(key):
		return numberValue(-2)
	case !c.was(key, timedStates):
		return numberValue(-1)
	case c.name == "ttl":
		return luaValue{kind: valueRemainingS, key: key, unit: Seconds}
	}
	return luaValue{kind: valueRemainingMS, key: key, unit: Milliseconds}
}

// count returns the number of keys that exist: EXISTS, DEL and UNLINK.
func (c *commandCall) count() luaValue {
	n := int64(0)
	for i := range c.args {
		if key := c.key(i); !c.free(key) {
			n++
			if c.name != "exists" {
				c.remove(key)
			}
		}
	}
	return numberValue(n)
}

// delIfEqual is DELEX key IFEQ token and DELIFEQ key token.
func (c *commandCall) delIfEqual() luaValue {
	key := c.lock()
	c.typed = true
	if c.name == "delex" && (c.args[1].kind != valueText || upper(c.args[1].text) != "IFEQ") {
		panic(c.refusal("it compares with something that is not its token"))
	}
	c.comparesToken(key, len(c.args)-1)
	if !c.owned(key) {
		return numberValue(0)
	}
	c.remove(key)
	return numberValue(1)
}

func (c *commandCall) remove(key int) {
	c.path.keys[key].content, c.path.keys[key].expiry = contentNone, expirySame
}

// store writes the token to a key under a condition. It returns whether it holds.
func (c *commandCall) store(key int, when Condition, expiry expirySource) bool {
	if when == IfAbsent && !c.free(key) || when == IfPresent && c.free(key) || when == IfEqual && !c.owned(key) {
		return false
	}
	c.path.keys[key].content, c.path.keys[key].expiry = contentToken, expiry
	return true
}

// set is SET with the options NX, XX, IFEQ token, EX, PX, EXAT and PXAT.
func (c *commandCall) set() luaValue {
	key := c.lock()
	c.storesToken(key, 1)
	when, expiry := Always, expiryNone
	for i := 2; i < len(c.args); i++ {
		if c.args[i].kind != valueText {
			panic(c.refusal("an option of SET is not written in the script"))
		}
		name := c.args[i].text
		unit, timed := setUnits[upper(name)]
		condition, conditional := setConditions[upper(name)]
		switch {
		case !timed && !conditional, conditional && when != Always, timed && expiry != expiryNone:
			panic(c.refusal("it calls SET with %s, or twice", short(name)))
		case (timed || condition == IfEqual) && i+1 == len(c.args):
			panic(c.refusal("it gives %s no value", short(name)))
		case timed:
			i++
			var ms int64
			if expiry, ms = c.expiry(key, i, unit); expiry == expiryOver {
				panic(c.refusal("it calls SET with an expiry of %d ms", ms))
			}
		case condition == IfEqual:
			i++
			c.comparesToken(key, i)
		}
		if conditional {
			when = condition
		}
	}
	if !c.store(key, when, expiry) {
		return boolValue(false)
	}
	return luaValue{kind: valueStatus, text: "OK"}
}

func (c *commandCall) setNX() luaValue {
	key := c.lock()
	c.storesToken(key, 1)
	if !c.store(key, IfAbsent, expiryNone) {
		return numberValue(0)
	}
	return numberValue(1)
}

// setEX is SETEX and PSETEX.
func (c *commandCall) setEX() luaValue {
	key := c.lock()
	c.storesToken(key, 2)
	expiry, ms := c.expiry(key, 1, expireUnits[c.name])
	if expiry == expiryOver {
		panic(c.refusal("it gives an expiry of %d ms", ms))
	}
	c.store(key, Always, expiry)
	return luaValue{kind: valueStatus, text: "OK"}
}

// expire is EXPIRE, PEXPIRE, EXPIREAT and PEXPIREAT, with one of NX, XX, GT and LT.
func (c *commandCall) expire() luaValue {
	key, unit := c.lock(), expireUnits[c.name]
	expiry, ms := c.expiry(key, 1, unit) // Redis reads it even if there is no key
	if len(c.args) == 3 && !slices.Contains([]string{"NX", "XX", "GT", "LT"}, upper(c.args[2].text)) {
		panic(c.refusal("it calls %s with %s, allowed are NX, XX, GT and LT", strings.ToUpper(c.name), short(c.args[2].text)))
	}
	if c.free(key) || len(c.args) == 3 && !c.mayExpire(key, unit, expiry, ms) {
		return numberValue(0)
	}
	if expiry == expiryOver {
		c.remove(key)
	} else {
		c.path.keys[key].expiry = expiry
	}
	return numberValue(1)
}

// mayExpire reports whether the flag of an EXPIRE allows it.
func (c *commandCall) mayExpire(key int, unit Unit, expiry expirySource, ms int64) bool {
	k, flag := c.path.keys[key], upper(c.args[2].text)
	if k.changed() {
		panic(c.refusal("it compares a time with the one that it has just set"))
	}
	timed := c.was(key, timedStates)
	switch flag {
	case "NX":
		return !timed
	case "XX":
		return timed
	}
	if expiry != expiryGiven || unit.absolute() {
		panic(c.refusal("it compares a time with something other than a lease"))
	}
	if !timed { // no expiry is later than any other
		return flag == "LT"
	}
	limit := threshold{arg: -1, n: ms}
	if arg, given := c.value(1); given {
		limit = threshold{arg: arg, scale: 1}
		if unit == Seconds {
			limit.scale = 1000
		}
	}
	if flag == "LT" {
		limit.n++ // longer than that
		return !c.below(key, limit)
	}
	return c.below(key, limit)
}

// persist takes the expiry away.
func (c *commandCall) persist() luaValue {
	key := c.lock()
	if c.free(key) || c.path.keys[key].expiry == expiryNone || !c.path.keys[key].changed() && !c.was(key, timedStates) {
		return numberValue(0)
	}
	c.path.keys[key].expiry = expiryNone
	return numberValue(1)
}

// selectDB is SELECT. A script may select only the database of the connection, which is an
// argument.
func (c *commandCall) selectDB() luaValue {
	v := c.args[0]
	if !v.is(valueArg, valueArgNumber) || c.db >= 0 && c.db != v.arg {
		panic(c.refusal("the database that it selects is not one of its arguments as it is"))
	}
	c.db = v.arg
	return luaValue{kind: valueUnknown}
}
