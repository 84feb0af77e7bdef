// command follows the commands that a script may call, each as Redis 7 runs it on a
// string key. A key is an element of KEYS as it is.
package dropin

import (
	"strings"

	"github.com/yuin/gopher-lua/ast"
)

// evaluatedCommand is one command: how many words follow its name, whether it writes,
// and what it does.
type evaluatedCommand struct {
	minWords, maxWords int // most 0: any number
	effect             commandEffect
	run                func(c *commandCall) []branch
}

// commandEffect tells what it means that a command fails.
type commandEffect uint8

const (
	readsOnly commandEffect = iota
	removes                 // the key stays until it ends, as if the script had never come
	writes                  // the script must not go on as if it had written
)

// commandCall is one call on one path.
type commandCall struct {
	*evaluator
	path *path
	line int
	name string // in lower case
	args []luaValue
}

// evaluatedCommands is never changed.
var evaluatedCommands = map[string]evaluatedCommand{
	"get": {1, 1, readsOnly, (*commandCall).get}, "getdel": {1, 1, writes, (*commandCall).getDel},
	"set": {2, 0, writes, (*commandCall).set}, "setnx": {2, 2, writes, (*commandCall).setNX},
	"setex": {3, 3, writes, (*commandCall).setEX}, "psetex": {3, 3, writes, (*commandCall).setEX},
	"del": {1, 0, removes, (*commandCall).del}, "unlink": {1, 0, removes, (*commandCall).del},
	"delex": {3, 3, writes, (*commandCall).delIfEqual}, "delifeq": {2, 2, writes, (*commandCall).delIfEqual},
	"exists": {1, 0, readsOnly, (*commandCall).exists},
	"expire": {2, 2, writes, (*commandCall).expire}, "pexpire": {2, 2, writes, (*commandCall).expire},
	"expireat": {2, 2, writes, (*commandCall).expire}, "pexpireat": {2, 2, writes, (*commandCall).expire},
	"ttl": {1, 1, readsOnly, (*commandCall).remaining}, "pttl": {1, 1, readsOnly, (*commandCall).remaining},
	"lpush": {2, 0, writes, (*commandCall).push}, "rpush": {2, 0, writes, (*commandCall).push},
	"publish": {2, 2, readsOnly, (*commandCall).publish}, "spublish": {2, 2, readsOnly, (*commandCall).publish},
	"select": {1, 1, readsOnly, (*commandCall).selectDB},
}

// command follows redis.call and redis.pcall.
func (e *evaluator) command(p *path, n *ast.FuncCallExpr) []branch {
	name := strings.ToLower(n.Args[0].(*ast.StringExpr).Value)
	c := evaluatedCommands[name]
	e.writes = e.writes || c.effect != readsOnly
	var out []branch
	for _, l := range e.list(p, n.Args[1:]) {
		out = append(out, c.run(&commandCall{e, l.path, n.Line(), name, l.values})...)
	}
	return out
}

// key is the n-th argument of a command, an element of KEYS. ok is false if it is
// something else, or if the evaluation is over.
func (c *commandCall) key(n int) (key int, ok bool) {
	if c.args[n].kind != valueKey {
		c.refuse(c.line, "a key is not taken from KEYS as it is, and may be one that is not among KEYS")
		return 0, false
	}
	key = c.args[n].key
	c.touch(key)
	return key, !c.stopped()
}

// lock is the n-th argument, a key that holds no list.
func (c *commandCall) lock(n int) (key int, ok bool) {
	if key, ok = c.key(n); ok && c.signals[key] {
		c.refuse(c.line, "it uses key %d both as a list and as a lock", key+1)
		return 0, false
	}
	return key, ok
}

// token notes that an argument is the token of a key.
func (e *evaluator) token(line, key, arg int) bool {
	if e.tokens[key] < 0 {
		e.tokens[key] = arg
	}
	if e.tokens[key] != arg {
		e.refuse(line, "it takes arguments %d and %d for the token", e.tokens[key]+1, arg+1)
		return false
	}
	return true
}

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

// replies are the branches of a command with two outcomes.
func twoBranches(p *path, v luaValue, q *path, w luaValue) (out []branch) {
	if p != nil {
		out = append(out, branch{p, v})
	}
	if q != nil {
		out = append(out, branch{q, w})
	}
	return out
}

func (c *commandCall) getDel() []branch {
	out := c.get()
	for _, b := range out {
		if b.value.truth() {
			b.path.remove(c.args[0].key)
		}
	}
	return out
}

// remove empties a key.
func (p *path) remove(key int) {
	p.keys[key].content, p.keys[key].expiry, p.keys[key].fixed = contentNone, expirySame, 0
}

// store writes the token to a key.
func (p *path) store(key int, expiry expirySource, fixed int64) {
	p.keys[key].content, p.keys[key].expiry, p.keys[key].fixed = contentToken, expiry, fixed
}

// stores notes that the n-th argument is written to the key: its token.
func (c *commandCall) storesToken(key, n int) bool {
	v := c.args[n]
	if v.kind == valueHeld && v.key == key && c.path.keys[key].before&^selfStates == 0 && c.tokens[key] >= 0 {
		return true // it holds its token
	}
	if v.kind != valueArg {
		c.refuse(c.line, "it stores something that is not an argument as it is")
		return false
	}
	return c.token(c.line, key, v.arg)
}

// set reads the options of SET: NX, XX, IFEQ token, EX, PX, EXAT and PXAT.
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

// expiry is what a time stands for. There is one time argument, in one unit.
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

// sum counts over all keys of a command, as DEL and EXISTS do.
func (c *commandCall) countKeys(each func(p *path, key int) (yes, no *path)) []branch {
	out := c.one(c.path, numberValue(0))
	for i := range c.args {
		key, ok := c.key(i)
		if !ok {
			return nil
		}
		var next []branch
		for _, b := range out {
			if c.signals[key] || b.value.kind == valueUnknown {
				b.value = luaValue{kind: valueUnknown}
			}
			if c.signals[key] {
				next = append(next, b)
				continue
			}
			yes, no := each(b.path, key)
			more := b.value
			more.n++
			next = append(next, twoBranches(yes, more, no, b.value)...)
		}
		out = next
	}
	return out
}

func (c *commandCall) del() []branch {
	return c.countKeys(func(p *path, key int) (yes, no *path) {
		no, yes = p.splitFree(key)
		if yes != nil {
			yes.remove(key)
		}
		return yes, no
	})
}

func (c *commandCall) exists() []branch {
	return c.countKeys(func(p *path, key int) (yes, no *path) {
		no, yes = p.splitFree(key)
		return yes, no
	})
}

// delIfEqual is DELEX key IFEQ token and DELIFEQ key token.
func (c *commandCall) delIfEqual() []branch {
	key, ok := c.lock(0)
	if !ok {
		return nil
	}
	want := c.args[len(c.args)-1]
	if want.kind != valueArg || c.name == "delex" && (c.args[1].kind != valueText || upper(c.args[1].text) != "IFEQ") {
		c.refuse(c.line, "it compares with something that is not its token")
		return nil
	}
	if !c.token(c.line, key, want.arg) {
		return nil
	}
	yes, no := c.path.splitSelf(key)
	if yes != nil {
		yes.remove(key)
	}
	return twoBranches(yes, numberValue(1), no, numberValue(0))
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

// expireSignal: how long a list lasts is no lease.
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

// push marks its key as a list, which wakes those who wait for it.
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

// publish: the number of receivers differs between masters. The daemon looks at the
// arguments of each call for channels of its own.
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

// reservedChannel is in the names of the daemons' own channels.
const reservedChannel = "redlockd:"

// selects: only the database of the connection may be selected, which is an argument.
func (c *commandCall) selectDB() []branch {
	v := c.args[0]
	if !v.is(valueArg, valueArgNumber) || c.db >= 0 && c.db != v.arg {
		c.refuse(c.line, "the database that it selects is not one of its arguments as it is")
		return nil
	}
	c.evaluator.db = v.arg
	return c.one(c.path, luaValue{kind: valueUnknown})
}
