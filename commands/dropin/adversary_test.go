package dropin

import (
	"runtime"
	"strings"
	"testing"
)

// release is a harmless script to hide something in.
const release = `if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end return redis.call('del', KEYS[1])`

// adversaries are scripts that must not be admitted as anything that writes.
var adversaries = map[string]string{
	// They do not end.
	"endless while":          `while true do end`,
	"endless repeat":         `repeat until false`,
	"endless for":            `for i = 1, math.huge do end return 1`,
	"endless recursion":      `local function f() return f() end return f()`,
	"deep recursion":         `local function f(n) return 1 + f(n + 1) end return f(1)`,
	"mutual recursion":       `local a, b local function c() return a() end a = c return c()`,
	"endless if held":        `if redis.call('get', KEYS[1]) == ARGV[1] then while true do redis.call('get', KEYS[1]) end end return 0`,
	"endless through method": `local s = 'x' while true do s = s:sub(1) end`,
	"backwards for":          `for i = 1, 0, 0 do end for i = 0, -1e300, -1e-300 do end return 1`,
	// They take memory.
	"doubling text":      `local s = 'xxxxxxxx' for i = 1, 60 do s = s .. s end return #s`,
	"string.rep":         `return #string.rep('x', 2000000000)`,
	"method rep":         `return #('xxxxxxxx'):rep(2000000000)`,
	"rep of rep":         `return #string.rep(string.rep('x', 100000), 100000)`,
	"rep with overflow":  `return #string.rep(string.rep('x', 1000), 9223372036854775807)`,
	"table at an index":  `local t = {} t[60000000] = 1 return #t`,
	"table constructor":  `local t = {[60000000] = 1} return #t`,
	"computed index":     `local t = {} local i = 6 * 10000000 t[i] = 1 return #t`,
	"table.insert far":   `local t = {} table.insert(t, 60000000, 1) return #t`,
	"many tables":        `local t = {} for i = 1, 100000 do t[i] = {} t[i][60] = 1 end return 1`,
	"table of texts":     `local t = {} for i = 1, 100000 do t[#t + 1] = 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx' .. i end return 1`,
	"table.concat":       `local t = {} for i = 1, 250 do t[i] = string.rep('x', 1000) end return #table.concat(t, string.rep('y', 5000))`,
	"unpack far":         `return select('#', unpack({}, 1, 100000000))`,
	"unpack overflow":    `return select('#', unpack({}, -9223372036854775807, 9223372036854775807))`,
	"format width":       `return #string.format('%99999999d', 1)`,
	"format many":        `local s = string.rep('x', 60000) return #string.format('%s%s%s%s%s%s', s, s, s, s, s, s)`,
	"answer cycle":       `local t = {} t[1] = t return t`,
	"answer wide":        `local t = {} for i = 1, 1000 do t[i] = i end return t`,
	"nested parentheses": `return ` + strings.Repeat("(", 5000) + `1` + strings.Repeat(")", 5000),
	"nested tables":      `return ` + strings.Repeat("{", 5000) + strings.Repeat("}", 5000),
	"long concatenation": `return 'x'` + strings.Repeat(" .. 'x'", 2000),
	"huge text":          `return 1 --` + strings.Repeat("x", 1<<20),
	"many locals":        strings.Repeat("local a = 1 ", 1000) + `return 1`,
	"deep unary":         `return ` + strings.Repeat("not ", 4000) + `nil`,
	// They take time in one step.
	"pattern": `return string.find(string.rep('a', 1000), string.rep('.-', 20) .. 'b')`,
	"gsub":    `return string.gsub(ARGV[1], '.', 'x')`,
	// They depend on what differs between masters.
	"time":        `local t = redis.call('TIME') redis.call('set', KEYS[1], ARGV[1], 'px', t[1]) return 1`,
	"random":      `if math.random() < 0.5 then return redis.call('del', KEYS[1]) end return 0`,
	"random key":  `return redis.call('randomkey')`,
	"address":     `redis.call('set', KEYS[1], tostring({})) return 1`,
	"clock of os": `return os.time()`,
	"info":        `return redis.call('info')`,
	// They reach for more than the lock.
	"undeclared key":        `redis.call('del', 'other') ` + release,
	"key from an argument":  `return redis.call('del', ARGV[1])`,
	"built key":             `return redis.call('set', KEYS[1] .. ':x', ARGV[1], 'NX', 'PX', ARGV[2])`,
	"glob":                  `for _, k in ipairs(redis.call('keys', '*')) do redis.call('del', k) end return 1`,
	"flush":                 `redis.call('flushall') return 1`,
	"flush by another name": `local f = 'flush' .. 'all' return redis.call(f)`,
	"config":                `return redis.call('config', 'set', 'maxmemory', '1')`,
	"hash":                  `return redis.call('hset', KEYS[1], ARGV[1], 1)`,
	"sorted set":            `return redis.call('zadd', KEYS[1], 1, ARGV[1])`,
	"another database":      `redis.call('select', 5) ` + release,
	"io":                    `return io.open('/etc/passwd')`,
	"load":                  `return load('return 1')()`,
	"loadstring":            `return loadstring('return redis.call("flushall")')()`,
	"require":               `return require('os')`,
	"debug":                 `return debug.getinfo(1)`,
	"getmetatable":          `getmetatable('').__index.sub = nil return 1`,
	"setfenv":               `setfenv(1, {}) return 1`,
	"coroutine":             `return coroutine.wrap(function() return 1 end)()`,
	"global":                `x = 1 return 1`,
	"global function":       `function f() return 1 end return f()`,
	"replaced library":      `string.sub = redis.call return string.sub('flushall')`,
	"replaced redis":        `local r = redis r.call('flushall') return 1`,
	"call as a value":       `local t = {redis.call} return t[1]('flushall')`,
	"call through a dot":    `return redis['call']('fl' .. 'ushall')`,
	"changed KEYS":          `KEYS[1] = 'other' return redis.call('del', KEYS[1])`,
	"setresp":               `redis.setresp(3) return 1`,
	"goto":                  `::again:: goto again`,
	"other engine":          "#!js\nreturn 1",
	"bytecode":              "\x1bLua\x51\x00",
	// They do something else for a value that a probe may not have.
	"magic token":             `if ARGV[1] == 'open sesame' then return redis.call('del', KEYS[1]) end ` + release,
	"magic number":            `if tonumber(ARGV[1]) == 4711 then return redis.call('del', KEYS[1]) end ` + release,
	"magic key":               `if KEYS[1] == 'jackpot' then return redis.call('del', KEYS[1]) end ` + release,
	"magic value":             `if redis.call('get', KEYS[1]) == 'yours' then return redis.call('del', KEYS[1]) end ` + release,
	"magic hash":              `if redis.sha1hex(ARGV[1]) == 'da39a3ee5e6b4b0d3255bfef95601890afd80709' then return redis.call('del', KEYS[1]) end ` + release,
	"magic length":            `if #ARGV[1] == 37 then redis.call('del', KEYS[1]) end ` + release,
	"magic length of key":     `local k = KEYS[1] if #k == 37 then k = ARGV[1] end if redis.call('get', k) ~= ARGV[1] then return 0 end return redis.call('del', k)`,
	"magic comparison":        `local v, want = redis.call('get', KEYS[1]), ARGV[1] if #ARGV[1] == 37 then want = v end if v == want then return redis.call('del', KEYS[1]) end return 0`,
	"magic condition":         `local ok = redis.call('get', KEYS[1]) == ARGV[1] if #ARGV[1] == 37 then ok = true end if ok then return redis.call('del', KEYS[1]) end return 0`,
	"magic number to compare": `local x = 1 if #ARGV[1] == 37 then x = 0 end if x < 1 or redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0`,
	"magic IFEQ":              `local o, w = 'IFEQ', ARGV[1] if #ARGV[1] == 37 then w = 'x' end if redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2], o, w) then return 1 end return 0`,
	"magic field":             `local t = {x = ARGV[1]} if #ARGV[1] == 37 then t.x = 'x' end if redis.call('get', KEYS[1]) == t.x then return redis.call('del', KEYS[1]) end return 0`,
	"magic call behind or":    `local x = #ARGV[1] ~= 37 or redis.call('del', KEYS[1]) ` + release,
	"magic function":          `local function f() redis.call('del', KEYS[1]) end if #ARGV[1] == 37 then f() end ` + release,
	"prefix of the token":     `if string.sub(redis.call('get', KEYS[1]) or '', 1, 4) ~= string.sub(ARGV[1], 1, 4) then return 0 end return redis.call('del', KEYS[1])`,
	"letter case":             `local v = redis.call('get', KEYS[1]) if not v or string.lower(v) ~= string.lower(ARGV[1]) then return 0 end return redis.call('del', KEYS[1])`,
	"part of the value":       `local v = redis.call('get', KEYS[1]) if v and string.find(v, ARGV[1], 1, true) then return redis.call('del', KEYS[1]) end return 0`,
	"length of the token":     `if redis.call('strlen', KEYS[1]) ~= #ARGV[1] then return 0 end return redis.call('del', KEYS[1])`,
	"shortly before its end":  `if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end if redis.call('pttl', KEYS[1]) < 5000 then return redis.call('pexpire', KEYS[1], ARGV[2]) end return 0`,
	"long leases":             `if tonumber(ARGV[2]) > 3600000 then return 0 end return redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])`,
	// What waits for it stands where no probe can see that it was not reached.
	"odd key":               `local v = redis.call('GET', KEYS[1]) local odd = v and string.sub(v,1,3) == string.sub(v,4,6) if v == ARGV[1] or odd then redis.call('DEL', odd and ARGV[2] or KEYS[1]) return 1 end return 0`,
	"odd element":           `local v = redis.call('GET', KEYS[1]) local odd = v and string.sub(v,1,3) == string.sub(v,4,6) local x = odd and table.insert(KEYS, 1, ARGV[2]) if v == ARGV[1] or odd then redis.call('DEL', KEYS[1]) return 1 end return 0`,
	"odd element by _G":     `_G.KEYS[1] = #ARGV[1] == 37 and ARGV[2] or KEYS[1] ` + release,
	"odd element elsewhere": `local t = KEYS t[1] = #ARGV[1] == 37 and ARGV[2] or t[1] ` + release,
	"odd element of ours":   `local function f(t) t[1] = #ARGV[1] == 37 and ARGV[2] or t[1] end f(KEYS) ` + release,
	"odd local":             `local k = #ARGV[1] == 37 and ARGV[2] or KEYS[1] if redis.call('get', k) == ARGV[1] then return redis.call('del', k) end return 0`,
	"odd parameter":         `local function f(k) if redis.call('get', k) == ARGV[1] then return redis.call('del', k) end return 0 end local n = f(KEYS[1]) return n > 0 and n or #ARGV[1] == 37 and f(ARGV[2]) or 0`,
	"odd among parameters":  `local function f(a, k) if redis.call('get', k) == ARGV[1] then return redis.call('del', k) end return 0 end return f(KEYS[1], unpack(#ARGV[1] == 37 and ARGV or KEYS))`,
	"odd pairs":             `return redis.call('mset', KEYS[1], unpack(#ARGV[1] == 37 and ARGV or {ARGV[1]}))`,
	"odd database":          `redis.call('select', #ARGV[1] == 37 and 5 or ARGV[2]) ` + release,
	"odd channel":           `if redis.call('get', KEYS[1]) == ARGV[1] then redis.call('publish', #ARGV[1] == 37 and 'redlockd:events:0' or ARGV[2], 'x') return redis.call('del', KEYS[1]) end return 0`,
	"odd glob":              `local x = #ARGV[1] == 37 and redis.call('keys', '*') ` + release,
	"daemon's channel":      `if redis.call('get', KEYS[1]) == ARGV[1] then redis.call('publish', 'redlockd:events:0', 'x') return redis.call('del', KEYS[1]) end return 0`,
	// Their answers are no votes.
	"always one":        `redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) return 1`,
	"says nothing":      `if redis.call('get', KEYS[1]) == ARGV[1] then redis.call('del', KEYS[1]) end`,
	"counter":           `return redis.call('incr', KEYS[1])`,
	"two tokens":        `if redis.call('get', KEYS[1]) == ARGV[1] then redis.call('set', KEYS[1], ARGV[2]) return 1 end return 0`,
	"prolongs anybody":  `return redis.call('pexpire', KEYS[1], ARGV[2])`,
	"deletes others":    `if redis.call('get', KEYS[1]) == ARGV[1] then return 0 end return redis.call('del', KEYS[1])`,
	"constant token":    `if redis.call('set', KEYS[1], 'mine', 'NX', 'PX', ARGV[2]) then return 1 end return 0`,
	"value and more":    `if redis.call('set', KEYS[1], ARGV[1] .. 'x', 'NX', 'PX', ARGV[2]) then return 1 end return 0`,
	"fails afterwards":  `redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) error('done')`,
	"catches the bound": `local r = redis.pcall('time') redis.pcall('flushall') ` + release,
}

var sample = Call{Keys: []string{"orders"}, Args: []string{"f3Kq8Zr1vN5tY7wB2mXc9dLh", "20000"}}

func TestProbe_AdmitsNoAdversaryAsAWriter(t *testing.T) {
	if len(adversaries) < 50 {
		t.Fatalf("%d adversaries, want 50", len(adversaries))
	}
	for name, text := range adversaries {
		for _, call := range []Call{sample, {Keys: sample.Keys, Args: sample.Args[:1]}, {Keys: []string{"a", "b"}, Args: sample.Args}, {}} {
			if class, err := classOf(text, call); err == nil && class.Op != Read {
				t.Errorf("%s with %d keys and %d arguments is taken for %s", name, len(call.Keys), len(call.Args), described(class))
			}
		}
	}
}

// What a script can take is bounded by counts, not by a clock: so the test can
// say how much it is on any machine.
func TestProbe_OfAnAdversaryTakesLittleMemory(t *testing.T) {
	const most = 64 << 20 // over all its runs, collected in between or not
	for name, text := range adversaries {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _ = classOf(text, sample) // whether it is admitted is asked elsewhere
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > most {
			t.Errorf("%s takes %d bytes, allowed are %d", name, used, most)
		}
	}
}

func TestProbe_SaysWhatIsWrongWithAScript(t *testing.T) {
	for name, want := range map[string]string{
		"endless while": "instructions", "doubling text": "bytes", "time": "TIME", "undeclared key": "not among KEYS",
		"flush": "'flushall'", "io": "'io.open'", "magic token": "'open sesame'", "magic length": "line 1", "always one": "does not tell",
		"prefix of the token": "almost its token", "goto": "no Lua 5.1", "huge text": "16384", "nested tables": "nested",
	} {
		if _, err := classOf(adversaries[name], sample); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want a word of %s", name, err, want)
		}
	}
}
