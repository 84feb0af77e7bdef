package dropin

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func number(n int64) ScriptReply { return ScriptReply{Kind: KindInt, Int: n} }

// String is the form of an answer that parseAnswer reads.
func (v luaValue) String() string {
	switch v.kind {
	case valueNil, valueFalse:
		return "nil"
	case valueRemainingMS:
		return "pttl"
	case valueRemainingS:
		return "ttl"
	case valueHeld:
		return "value"
	case valueNumber:
		return strconv.FormatInt(v.n, 10)
	case valueArg:
		return fmt.Sprintf("{arg%d}", v.arg+1)
	case valueKey:
		return fmt.Sprintf("{key%d}", v.key+1)
	case valueFailure:
		return "-" + strings.TrimPrefix(v.text, "ERR ")
	case valueTable, valueJoined:
		words := make([]string, len(v.items))
		for i, item := range v.items {
			words[i] = item.String()
		}
		if v.kind == valueJoined {
			return strings.Join(words, "")
		}
		return "[" + strings.Join(words, " ") + "]"
	}
	return v.text
}

// behaviours are scripts written for these tests, for each behaviour in the
// table of known scripts: op, keys, arguments, answers. Where many libraries
// share a behaviour there are several spellings of it.
var behaviours = map[string][]string{
	"release 1 (token) 0|1!|0|1!": {
		`local held = redis.call('GET', KEYS[1]); if held ~= ARGV[1] then return 0 end; return redis.call('DEL', KEYS[1])`,
		`if redis.call("get", KEYS[1]) ~= ARGV[1] then return 0 else return redis.call("unlink", KEYS[1]) end`,
		"-- gives the key back\nlocal mine = redis.pcall('get', KEYS[1]) == ARGV[1]\nif mine then\n  redis.call('del', KEYS[1])\n  return 1\nend\nreturn 0",
		`return redis.call('get', KEYS[1]) == ARGV[1] and redis.call('del', KEYS[1]) or 0`,
		`local n = 0 for _, key in ipairs(KEYS) do if redis.call('get', key) == ARGV[1] then n = n + redis.call('del', key) end end return n`,
		`local call = redis.call local function owner(k) return call('get', k) end if owner(KEYS[1]) == ARGV[1] then return call('del', KEYS[1]) end return 0`,
		`return redis.call('DELEX', KEYS[1], 'IFEQ', ARGV[1])`,
	},
	"extend-add 1 (token ms =0) 0|1!|0|0": {`
local v, left = redis.call('GET', KEYS[1]), 0
if v ~= ARGV[1] then return 0 end
left = redis.call('PTTL', KEYS[1])
if not left then left = 0 end
if left < 0 then return 0 end
local ms = ARGV[2]
if ARGV[3] == '0' then ms = ARGV[2] + left end
redis.call('PEXPIRE', KEYS[1], ms)
return 1`},
	"extend 1 (token ms) 0|1!|0|1!": {
		`if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end return redis.call('PEXPIRE', KEYS[1], ARGV[2])`,
		`local v = redis.call('GET', KEYS[1]); if not v or v ~= ARGV[1] then return 0 end; redis.call('SET', KEYS[1], v, 'XX', 'PX', tonumber(ARGV[2])); return 1`,
		`return (redis.call('get', KEYS[1]) == ARGV[1]) and redis.call('pexpire', KEYS[1], ARGV[2]) or 0`,
		`local done = 0 for i = 1, #KEYS do if redis.call('get', KEYS[i]) == ARGV[1] and redis.call('set', KEYS[i], ARGV[1], 'px', ARGV[2]) then done = done + 1 end end return done`,
		`if redis.call('getrange', KEYS[1], 0, -1) ~= ARGV[1] then return 0 else return redis.call('expire', KEYS[1], math.floor(ARGV[2] / 1000)) end`,
		`if redis.call('set', KEYS[1], ARGV[1], 'IFEQ', ARGV[1], 'PX', ARGV[2]) then return 1 else return 0 end`,
	},
	"extend-add 1 (token ms) 0|1!|0|0": {
		`if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end local left = redis.call('pttl', KEYS[1]) if left <= 0 then return 0 end redis.call('pexpire', KEYS[1], left + ARGV[2]) return 1`,
	},
	"extend 1 (token ms) 0|1!|0|0": {
		`if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end if redis.call('pttl', KEYS[1]) < 0 then return 0 end return redis.call('pexpire', KEYS[1], ARGV[2])`,
	},
	"release 1 (token) -1|1!|0|1!": {
		`local v = redis.call('get', KEYS[1]) if not v then return -1 elseif v == ARGV[1] then return redis.call('del', KEYS[1]) end return 0`,
	},
	"reacquire 1 (token ms) 1!|1!|0|1!": {
		`local v = redis.call('get', KEYS[1]) if v and v ~= ARGV[1] then return 0 end redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[2]) return 1`,
	},
	"reacquire 1 (token len ms) OK!|OK!|nil|OK!": {
		`local n = tonumber(ARGV[2]) local v = redis.call('get', KEYS[1]) if v and string.sub(v, 1, n) ~= string.sub(ARGV[1], 1, n) then return false end return redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[3])`,
		`local mine = redis.call('getrange', KEYS[1], 0, ARGV[2] - 1) if mine == '' or mine == ARGV[1]:sub(1, tonumber(ARGV[2])) then return redis.call('psetex', KEYS[1], ARGV[3], ARGV[1]) end return nil`,
	},
	"extend 1 (token ms) nil|OK!|nil|OK!": {
		`local v = redis.call('mget', unpack(KEYS)) for _, x in ipairs(v) do if x ~= ARGV[1] then return nil end end for _, k in ipairs(KEYS) do redis.call('pexpire', k, ARGV[2]) end return redis.status_reply('OK')`,
	},
	"release 1 (token) nil|OK!|nil|OK!": {
		`for _, k in ipairs(KEYS) do if redis.call('get', k) ~= ARGV[1] then return nil end end redis.call('del', unpack(KEYS)) return {ok = 'OK'}`,
	},
	"read 1 (token) nil|pttl|nil|0": {
		`if redis.call('get', KEYS[1]) ~= ARGV[1] then return nil end local left = redis.call('pttl', KEYS[1]) if left < 0 then left = 0 end return left`,
	},
	"acquire 1 (token ms) 1!|0|0|0": {
		`for _, k in ipairs(KEYS) do if redis.call('exists', k) == 1 then return 0 end end local n = 0 for _, k in ipairs(KEYS) do redis.call('set', k, ARGV[1], 'PX', ARGV[2]) n = n + 1 end return n`,
		`if redis.call('setnx', KEYS[1], ARGV[1]) == 0 then return 0 end redis.call('pexpire', KEYS[1], ARGV[2]) return 1`,
	},
	"reacquire 1 (token ms) 1!|1!|-1|1!": {
		"local v = redis.call('get', KEYS[1])\r\nif v == false then\r\n  redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2])\r\n  return 1\r\nend\r\nif v == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end\r\nreturn -1",
		"local v = redis.call('get', KEYS[1])\nif v == false then\n  redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2])\n  return 1\nend\nif v == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end\nreturn -1",
	},
	"read 1 (token) 0|pttl|0|0": {
		`if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end local left = redis.call('pttl', KEYS[1]) return left > 0 and left or 0`,
	},
	"release 2 (token any) 1|0!|1|0!": {
		`if redis.call('get', KEYS[1]) ~= ARGV[1] then return 1 end redis.call('del', KEYS[2]) redis.call('lpush', KEYS[2], 1) redis.call('pexpire', KEYS[2], ARGV[2]) redis.call('del', KEYS[1]) return 0`,
	},
	"extend 2 (token s) 1|0!|1|2": {
		`if redis.call('get', KEYS[1]) ~= ARGV[1] then return 1 end if redis.call('ttl', KEYS[1]) < 0 then return 2 end redis.call('expire', KEYS[1], ARGV[2]) return 0`,
	},
	"discard 2 (token any) 0|1!|1!|1!": {
		`redis.call('del', KEYS[2]) redis.call('lpush', KEYS[2], '1') redis.call('pexpire', KEYS[2], ARGV[2]) return redis.call('del', KEYS[1])`,
	},
	"discard 0 () 0|1!|1!|1!": {
		`local n = 0 for _, k in ipairs(redis.call('keys', 'lock:*')) do n = n + redis.call('del', k) end return n`,
	},
	"reacquire 1 (token ms) OK!|OK!|-ERR ERROR|OK!": {
		`local v = redis.call('get', KEYS[1]) if v and v ~= ARGV[1] then return redis.error_reply('ERROR') end return redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[2])`,
	},
	"release 1 (token) OK|1!|-ERR ERROR|1!": {
		`local v = redis.call('get', KEYS[1]) if not v then return redis.status_reply('OK') end if v ~= ARGV[1] then return redis.error_reply('ERROR') end return redis.call('del', KEYS[1])`,
	},
	"read 1 (token) -ERR ERROR|ttl|-ERR ERROR|-1": {
		`if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('ttl', KEYS[1]) end return redis.error_reply('ERROR')`,
	},
	"reacquire 1 (token ms =yes) OK!|OK!|nil|OK!": {
		`local v = redis.call('get', KEYS[1]) if v == ARGV[1] or (not v and ARGV[3] == 'yes') then return redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2]) end`,
	},
	"read 1 () [nil -2]|[value pttl]|[value pttl]|[value -1]": {
		`return { redis.call('get', KEYS[1]), redis.call('pttl', KEYS[1]) }`,
	},
	"extend 1 (token s) 0|1!|0|1!": {
		`if ARGV[1] == redis.call('get', KEYS[1]) then return redis.call('expire', KEYS[1], ARGV[2]) end return 0`,
	},
	"acquire 1 (token s) OK!|nil|nil|nil": {
		`return redis.call('exists', KEYS[1]) < 1 and redis.call('setex', KEYS[1], ARGV[2], ARGV[1])`,
	},
	"acquire 1 (any s token) {arg1}1!|nil|nil|nil": {
		`for i, v in ipairs(KEYS) do if redis.call('set', v, ARGV[3], 'NX', 'EX', ARGV[2]) then return ARGV[1] .. i end end`,
	},
	"reacquire 1 (token ms) OK!|1!|nil|1!": {
		`if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end return redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])`,
	},
	"reacquire 1 (token ms) 1!|1!|nil|1!": {
		`local v = redis.call('get', KEYS[1]) if v == ARGV[1] then redis.call('pexpire', KEYS[1], ARGV[2]) return true elseif not v then redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2]) return true end return false`,
	},
	"extend 1 (token ms) nil|1!|nil|1!": {
		`if redis.call('get', KEYS[1]) == ARGV[1] then redis.call('pexpire', KEYS[1], ARGV[2]) return true end return false`,
	},
	"release 1 (token any) nil|1!|nil|1!": {
		`if redis.call('get', KEYS[1]) == ARGV[1] then redis.call('unlink', KEYS[1]) redis.call('publish', ARGV[2], KEYS[1]) return true end return false`,
	},
	"release 1 (token) nil|1!|nil|1!": {
		`if redis.call('get', KEYS[1]) == ARGV[1] then redis.call('unlink', KEYS[1]) return true end return false`,
	},
	"release 1 (token ms@) 0|1!|0|1!": {
		`local v = redis.call('GET', KEYS[1]) return v == ARGV[1] and redis.call('DEL', KEYS[1]) or 0`,
	},
	"extend 1 (token ms@) 0|1!|0|1!": {
		`if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpireat', KEYS[1], ARGV[2]) end return 0`,
	},
	"acquire 1 (token ms) OK!|nil|nil|nil": {`return redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])`, `local r = redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2], 'nx') return r`},
	"acquire 1 (former token ms) OK!|nil|nil|nil": {
		`if redis.call('get', KEYS[1]) == ARGV[1] then redis.call('unlink', KEYS[1]) end return redis.call('set', KEYS[1], ARGV[2], 'PX', ARGV[3], 'NX')`,
	},
	"acquire 1 (token ms@) OK!|nil|nil|nil":   {`local made = redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PXAT', ARGV[2]) return made`},
	"overwrite 1 (token ms) OK!|OK!|OK!|OK!":  {`local made = redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) return made`},
	"overwrite 1 (token ms@) OK!|OK!|OK!|OK!": {`local made = redis.call('SET', KEYS[1], ARGV[1], 'PXAT', ARGV[2]) return made`},
	"read 1 (token) -3|pttl|-3|-1":            {`if redis.call('get', KEYS[1]) ~= ARGV[1] then return -3 else return redis.call('pttl', KEYS[1]) end`},
	"acquire 1 (db token ms) 1!|0|0|0":        {`redis.pcall('select', ARGV[1]) local n = 0 for _, k in ipairs(KEYS) do if redis.call('set', k, ARGV[2], 'nx', 'px', ARGV[3]) then n = n + 1 end end return n`},
	"extend 1 (db token ms) 0|1!|0|1!":        {`redis.pcall('SELECT', tonumber(ARGV[1])) if redis.call('get', KEYS[1]) == ARGV[2] then return redis.call('pexpire', KEYS[1], ARGV[3]) end return 0`},
	"extend 1 (token least ms) [-1 -2]|[1 pttl]!|[-1 pttl]|[0 -1]|[0 pttl]": {
		`local left = redis.call('pttl', KEYS[1]) if left == -2 then return {-1, -2} end if left < tonumber(ARGV[2]) then return {0, left} end if redis.call('get', KEYS[1]) ~= ARGV[1] then return {-1, left} end redis.call('pexpire', KEYS[1], ARGV[3]) return {1, left}`,
	},
	"acquire 1 (token ms) [1 1]!|[0 1 {key1}]|[0 1 {key1}]|[0 1 {key1}]": {
		`for i, k in ipairs(KEYS) do if redis.call('exists', k) > 0 then return {0, i, k} end end for i, k in ipairs(KEYS) do redis.call('set', k, ARGV[i], 'PX', ARGV[#ARGV]) end return {1, #KEYS}`,
	},
	"read 1 () nil|[value pttl]|[value pttl]|[value -1]": {
		`local v = redis.call('get', KEYS[1]) if not v then return nil end return {v, redis.call('pttl', KEYS[1])}`,
	},
	"release 1 (db token) 0|1!|0|1!": {`redis.pcall('SELECT', ARGV[1]) if redis.call('get', KEYS[1]) == ARGV[2] then return redis.call('del', KEYS[1]) end return 0`},
}

// behaviour is the key of a row in behaviours.
func (k knownScript) behaviour() string {
	return fmt.Sprintf("%s %d (%s) %s", k.op, k.keys, k.args, k.answers)
}

// example is a call as the library of a row makes it.
func (k knownScript) example() ScriptCall {
	call := ScriptCall{Keys: make([]string, k.keys)}
	for i := range call.Keys {
		call.Keys[i] = fmt.Sprintf("orders:%d", i)
	}
	for _, word := range strings.Fields(k.args) {
		value, given := strings.CutPrefix(word, "=")
		if !given {
			value = map[string]string{"token": "f3Kq8Zr1vN5tY7wB2mXc9dLh", "ms": "20000", "s": "20", "ms@": "1800000020000", "len": "22", "db": "3", "any": "1000", "former": "aFormerToken0123456789", "least": "2000"}[word]
		}
		call.Args = append(call.Args, value)
	}
	return call
}

// eachBehaviour hands out the rows of the table, each with a script that
// behaves so, spellings in turn.
func eachBehaviour(t testing.TB, visit func(row knownScript, text string)) {
	t.Helper()
	used := make(map[string]int)
	for _, row := range knownScripts() {
		spellings := behaviours[row.behaviour()]
		if len(spellings) == 0 {
			t.Errorf("no script behaves like %s of %s: %s", row.purpose, row.library, row.behaviour())
			continue
		}
		visit(row, spellings[used[row.behaviour()]%len(spellings)])
		used[row.behaviour()]++
	}
	for name, spellings := range behaviours {
		if used[name] < len(spellings) {
			t.Errorf("%s has %d spellings, %d were used", name, len(spellings), used[name])
		}
	}
}

// outcomesOf are the answers in the states of the table, of a class of either kind.
func outcomesOf(c *Class) (all []outcome) {
	if c.script == nil {
		return c.outcomes[:tableStates]
	}
	for state := range tableStates {
		call := ScriptCall{Keys: make([]string, c.Keys), Args: make([]string, c.Args)}
		for i := range call.Args {
			call.Args[i] = "20000"
		}
		for _, g := range c.Given {
			if n := g.Arg - 1 - len(call.Args); n < 0 {
				call.Args[g.Arg-1] = g.Value
			} else {
				call.Keys[n] = g.Value
			}
		}
		p := c.pathOf(call, state)
		all = append(all, outcome{reply: p.reply, done: p.done})
	}
	return all
}

// pathOf is the answer as a value, for locks that are all in one state.
func (c *Class) pathOf(call ScriptCall, state KeyState) outcome {
	views := make([]KeyView, c.Keys-len(c.Others))
	held, n := make([]*KeyView, c.Keys), 0
	var locks []int
	for i := range held {
		if !slices.Contains(c.Others, i+1) {
			views[n] = KeyView{State: state, Left: map[KeyState]int64{Free: -2, HeldBySelf: 60000, HeldByOther: 60000}[state]}
			if state == NoExpiry {
				views[n].Left = -1
			}
			held[i], locks = &views[n], append(locks, i)
			n++
		}
	}
	v := &classifier{evaluator: newEvaluator(call, held), locks: locks}
	v.evaluate(c.script)
	return outcome{reply: v.answer(v.paths[0]), done: v.changed(v.paths[0]) > 0}
}

// described is everything of a class that a test compares.
func described(c *Class) string {
	var answers []string
	for _, o := range outcomesOf(c) {
		mark := ""
		if o.done {
			mark = "!"
		}
		answers = append(answers, o.reply.String()+mark)
	}
	return fmt.Sprintf("%s token %d prefix %d time %v given %v others %v db %d pattern %q: %s",
		c.Op, c.Token, c.Prefix, c.Time, c.Given, c.Others, c.DB, c.Pattern, strings.Join(answers, "|"))
}

func TestBehaviours_AreNoTextsOfLibraries(t *testing.T) {
	for name, spellings := range behaviours {
		for _, text := range spellings {
			if _, taken := known()[shaOf(text)]; taken {
				t.Errorf("%s: a script of the tests has the SHA1 of a library's", name)
			}
		}
	}
}
