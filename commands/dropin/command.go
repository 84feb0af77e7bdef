// The commands that a script may call. Each is followed as Redis 7 runs it on a string key. A
// key must be an unchanged element of KEYS.

package dropin

import (
	"strings"

	"github.com/yuin/gopher-lua/ast"
)

// evaluatedCommand is one command: the number of words after its name, whether it writes,
// and its behaviour.
type evaluatedCommand struct {
	minWords, maxWords int // without a maximum if it is 0
	effect             commandEffect
	run                func(c *commandCall) []branch
}

// commandEffect is the consequence of a command that fails.
type commandEffect uint8

const (
	readsOnly commandEffect = iota
	removes                 // the key stays until its expiry, as if the script had not run
	writes                  // the script must not continue as if it had written
)

// commandCall is one call on one path.
type commandCall struct {
	*evaluator
	path *path
	line int
	name string // in lower case
	args []luaValue
}

// evaluatedCommands is the table of commands. It never changes.
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

// key is the n-th argument of a command, an element of KEYS. ok is false if it is no
// element of KEYS, or if the evaluation has stopped.
func (c *commandCall) key(n int) (key int, ok bool) {
	if c.args[n].kind != valueKey {
		c.refuse(c.line, "a key is not taken from KEYS as it is, and may be one that is not among KEYS")
		return 0, false
	}
	key = c.args[n].key
	c.touch(key)
	return key, !c.stopped()
}

// lock is the n-th argument, a key that is not used as a list.
func (c *commandCall) lock(n int) (key int, ok bool) {
	if key, ok = c.key(n); ok && c.signals[key] {
		c.refuse(c.line, "it uses key %d both as a list and as a lock", key+1)
		return 0, false
	}
	return key, ok
}

// token records that an argument is the token of a key.
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

// twoBranches are the branches of a command with two outcomes.
func twoBranches(p *path, v luaValue, q *path, w luaValue) (out []branch) {
	if p != nil {
		out = append(out, branch{p, v})
	}
	if q != nil {
		out = append(out, branch{q, w})
	}
	return out
}

// selectDB follows SELECT. A script may select only the database of the connection, which is
// an argument.
func (c *commandCall) selectDB() []branch {
	v := c.args[0]
	if !v.is(valueArg, valueArgNumber) || c.db >= 0 && c.db != v.arg {
		c.refuse(c.line, "the database that it selects is not one of its arguments as it is")
		return nil
	}
	c.evaluator.db = v.arg
	return c.one(c.path, luaValue{kind: valueUnknown})
}
