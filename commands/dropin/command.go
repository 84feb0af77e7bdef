// The commands that a script may call. Each is followed as Redis 7 runs it on a string key. A
// key must be an unchanged element of KEYS.

package dropin

import "strings"

// evaluatedCommand is one command: the number of words after its name, whether it writes,
// and its behaviour.
type evaluatedCommand struct {
	minWords, maxWords int // without a maximum if it is 0
	effect             commandEffect
	run                func(c *commandCall) luaValue
}

// commandEffect is the consequence of a command that fails.
type commandEffect uint8

const (
	readsOnly commandEffect = iota
	removes                 // the key stays until its expiry, as if the script had not run
	writes                  // the script must not continue as if it had written
)

// evaluatedCommands is the table of commands. It never changes.
var evaluatedCommands = map[string]evaluatedCommand{
	"get": {1, 1, readsOnly, (*commandCall).get}, "getdel": {1, 1, writes, (*commandCall).getDel},
	"set": {2, 0, writes, (*commandCall).set}, "setnx": {2, 2, writes, (*commandCall).setNX},
	"setex": {3, 3, writes, (*commandCall).setEX}, "psetex": {3, 3, writes, (*commandCall).setEX},
	"del": {1, 0, removes, (*commandCall).count}, "unlink": {1, 0, removes, (*commandCall).count},
	"delex": {3, 3, writes, (*commandCall).delIfEqual}, "delifeq": {2, 2, writes, (*commandCall).delIfEqual},
	"exists": {1, 0, readsOnly, (*commandCall).count},
	"expire": {2, 2, writes, (*commandCall).expire}, "pexpire": {2, 2, writes, (*commandCall).expire},
	"expireat": {2, 2, writes, (*commandCall).expire}, "pexpireat": {2, 2, writes, (*commandCall).expire},
	"ttl": {1, 1, readsOnly, (*commandCall).remaining}, "pttl": {1, 1, readsOnly, (*commandCall).remaining},
	"lpush": {2, 0, writes, (*commandCall).push}, "rpush": {2, 0, writes, (*commandCall).push},
	"publish": {2, 2, readsOnly, (*commandCall).publish}, "spublish": {2, 2, readsOnly, (*commandCall).publish},
	"select": {1, 1, readsOnly, (*commandCall).selectDB},
}

var expireUnits = map[string]Unit{
	"setex": Seconds, "psetex": Milliseconds,
	"expire": Seconds, "pexpire": Milliseconds, "expireat": UnixSeconds, "pexpireat": UnixMilliseconds,
}

// reservedChannel is a part of the names of the daemons' own channels.
const reservedChannel = "redlockd:"

type commandCall struct {
	*evaluation
	name string // in lower case
	args []luaValue
}

// command is redis.call or redis.pcall. words begins with the name of the command.
func (e *evaluation) command(words []luaValue) luaValue {
	name := strings.ToLower(words[0].text)
	c := evaluatedCommands[name]
	e.writes = e.writes || c.effect != readsOnly
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

// lock is the first argument, a key that is not used as a list.
func (c *commandCall) lock() int {
	key := c.key(0)
	if c.signals[key] {
		panic(c.refusal("it uses key %d both as a list and as a lock", key+1))
	}
	return key
}

// comparesToken records that the command compares the key with its n-th argument: the token.
func (c *commandCall) comparesToken(key, n int) {
	if c.args[n].kind != valueArg {
		panic(c.refusal("it compares with something that is not its token"))
	}
	c.isToken(key, c.args[n].arg)
}

// storesToken records that the command stores the n-th argument in the key: its token.
func (c *commandCall) storesToken(key, n int) {
	v := c.args[n]
	if v.kind == valueHeld && v.key == key && c.path.keys[key].before&^selfStates == 0 && c.tokens[key] >= 0 {
		return // the key holds its token
	}
	if v.kind != valueArg {
		panic(c.refusal("it stores something that is not an argument as it is"))
	}
	c.isToken(key, v.arg)
}

// expiry is the meaning of a time, with the ms of one that the script contains. A script has
// one time argument, in one unit.
func (c *commandCall) expiry(key int, v luaValue, unit Unit) (source expirySource, ms int64) {
	if n, ok := wholeNumber(v.text); ok && v.kind == valueText {
		v = numberValue(n)
	}
	source, from := expiryGiven, Time{Arg: v.arg + 1, Unit: unit}
	switch {
	case v.is(valueArg, valueArgNumber):
	case v.kind == valueExtended && v.key == key && unit == Milliseconds && c.name == "pexpire":
		source = expiryAdded
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
		return luaValue{kind: valueRemainingS, key: key}
	}
	return luaValue{kind: valueRemainingMS, key: key}
}

// count is how many keys exist: EXISTS, DEL and UNLINK.
func (c *commandCall) count() luaValue {
	n, lists := int64(0), false
	for i := range c.args {
		key := c.key(i)
		switch {
		case c.signals[key]:
			lists = true
		case !c.free(key):
			n++
			if c.name != "exists" {
				c.remove(key)
			}
		}
	}
	if lists {
		return luaValue{kind: valueUnknown}
	}
	return numberValue(n)
}

// delIfEqual is DELEX key IFEQ token and DELIFEQ key token.
func (c *commandCall) delIfEqual() luaValue {
	key := c.lock()
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
			if expiry, ms = c.expiry(key, c.args[i], unit); expiry == expiryOver {
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
	expiry, ms := c.expiry(key, c.args[1], expireUnits[c.name])
	if expiry == expiryOver {
		panic(c.refusal("it gives an expiry of %d ms", ms))
	}
	c.store(key, Always, expiry)
	return luaValue{kind: valueStatus, text: "OK"}
}

// expire is EXPIRE, PEXPIRE, EXPIREAT and PEXPIREAT. The expiry of a list is no lease.
func (c *commandCall) expire() luaValue {
	key, v := c.key(0), c.args[1]
	if c.signals[key] {
		switch v.kind {
		case valueArg, valueArgNumber:
			c.numbers[v.arg] = true
		case valueNumber:
		default:
			panic(c.refusal("it gives a list an expiry that is neither an argument nor a number of its own"))
		}
		return luaValue{kind: valueUnknown}
	}
	expiry, _ := c.expiry(key, v, expireUnits[c.name])
	switch {
	case c.free(key):
		return numberValue(0)
	case expiry == expiryOver:
		c.remove(key)
	default:
		c.path.keys[key].expiry = expiry
	}
	return numberValue(1)
}

// push is LPUSH and RPUSH. It marks its key as a list, which wakes waiters.
func (c *commandCall) push() luaValue {
	key := c.key(0)
	for _, v := range c.args[1:] {
		if !v.is(valueText, valueNumber, valueArg) {
			panic(c.refusal("it puts something into a list that is neither an argument nor its own"))
		}
	}
	if !c.signals[key] {
		c.signals[key] = true
		panic(again{})
	}
	return luaValue{kind: valueUnknown}
}

// publish has an unknown result: the number of receivers differs between masters. The
// daemon checks the arguments of each call for its own channels.
func (c *commandCall) publish() luaValue {
	channel, message := c.args[0], c.args[1]
	if !channel.is(valueArg, valueKey) && (channel.kind != valueText || strings.Contains(channel.text, reservedChannel)) {
		panic(c.refusal("a channel is neither taken from KEYS or ARGV as it is nor written in the script, or is the daemon's own"))
	}
	if !message.is(valueText, valueNumber, valueArg, valueKey, valueJoined) {
		panic(c.refusal("it publishes something other than texts of its own, KEYS and ARGV"))
	}
	c.publishes = true
	return luaValue{kind: valueUnknown}
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
