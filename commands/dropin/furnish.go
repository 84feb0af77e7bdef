// What does a probed script find around it? The functions of Lua and Redis
// that lock scripts use, each bounded; none that reads a clock, a file, a random
// number or another script.
package dropin

import (
	"crypto/sha1"
	"encoding/hex"
	"math"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

type library map[string]func(*machine) int

// The tables below are never changed.
var (
	baseLibrary = library{
		nameConcat: (*machine).concat, nameIndex: (*machine).index, nameReached: (*machine).reached,
		"tonumber": (*machine).tonumber, "tostring": (*machine).tostring, "type": (*machine).typeOf,
		"ipairs": (*machine).ipairs, "pairs": (*machine).pairs, "next": (*machine).next,
		"select": (*machine).choose, "unpack": (*machine).unpack,
		"assert": (*machine).assert, "error": (*machine).raise, "rawequal": (*machine).rawequal,
	}
	redisLibrary = library{
		"call": (*machine).call, "pcall": (*machine).pcall,
		"error_reply": (*machine).errorReply, "status_reply": (*machine).statusReply,
		"sha1hex": (*machine).sha1hex, "log": (*machine).log, "replicate_commands": (*machine).yes,
	}
	stringLibrary = library{
		"sub": (*machine).sub, "len": (*machine).length, "lower": (*machine).lower, "upper": (*machine).upper,
		"byte": (*machine).bytes, "char": (*machine).char, "format": (*machine).format, "rep": (*machine).rep,
		"find": (*machine).find, "reverse": (*machine).reverse,
	}
	mathLibrary = library{
		"floor": rounding(math.Floor), "ceil": rounding(math.Ceil), "abs": rounding(math.Abs),
		"max": (*machine).max, "min": (*machine).min,
	}
	tableLibrary = library{
		"insert": (*machine).insert, "remove": (*machine).remove, "concat": (*machine).join, "getn": (*machine).getn,
	}
)

// furnish puts the globals in place.
func (m *machine) furnish() {
	for name, f := range baseLibrary {
		m.G.Global.RawSetString(name, m.function(f))
	}
	redis := m.library(redisLibrary)
	for i, level := range []string{"LOG_DEBUG", "LOG_VERBOSE", "LOG_NOTICE", "LOG_WARNING"} {
		redis.RawSetString(level, lua.LNumber(i))
	}
	m.G.Global.RawSetString("redis", redis)
	m.G.Global.RawSetString("server", redis)
	text := m.library(stringLibrary)
	m.G.Global.RawSetString("string", text)
	methods := m.CreateTable(0, 1)
	methods.RawSetString("__index", text)
	m.SetMetatable(lua.LString(""), methods)
	maths := m.library(mathLibrary)
	maths.RawSetString("huge", lua.LNumber(math.Inf(1)))
	m.G.Global.RawSetString("math", maths)
	m.G.Global.RawSetString("table", m.library(tableLibrary))
	guard := m.CreateTable(0, 2)
	guard.RawSetString("__index", m.function((*machine).unknownGlobal))
	guard.RawSetString("__newindex", m.function((*machine).newGlobal))
	m.SetMetatable(m.G.Global, guard)
}

func (m *machine) library(l library) *lua.LTable {
	t := m.CreateTable(0, len(l))
	for name, f := range l {
		t.RawSetString(name, m.function(f))
	}
	return t
}

func (m *machine) function(f func(*machine) int) *lua.LFunction {
	return m.NewFunction(func(*lua.LState) int { return f(m) })
}

// give pushes the results of a function.
func (m *machine) give(values ...lua.LValue) int {
	for _, v := range values {
		m.Push(v)
	}
	return len(values)
}

// end refuses the script and ends it.
func (m *machine) end(reason string) int {
	m.store.refuse(reason)
	m.RaiseError("%s", reason)
	return 0
}

// spend counts bytes, and ends the script if there are none left.
func (m *machine) spend(bytes int) {
	if !m.budget.spend(bytes) {
		m.RaiseError("%s", m.store.refused)
	}
}

func (m *machine) unknownGlobal() int {
	return m.end("it uses the global " + short(m.CheckString(2)) + ", which lock scripts have no use for")
}

func (m *machine) newGlobal() int {
	return m.end("it makes a global " + short(m.CheckString(2)) + ", which Redis refuses")
}

func (m *machine) reached() int {
	m.program.blocks[m.CheckInt(1)].reached = true
	return m.give(lua.LFalse)
}

// index charges for the room that a table needs up to an index.
func (m *machine) index() int {
	if n, ok := m.Get(1).(lua.LNumber); ok && n >= smallIndex {
		m.spend(int(min(float64(n), mostBytes)) * 16)
	}
	return m.give(m.Get(1))
}

func (m *machine) concat() int {
	words := make([]string, m.GetTop())
	total := 0
	for i := range words {
		words[i] = m.textAt(i + 1)
		total += len(words[i])
	}
	m.spend(total)
	return m.give(lua.LString(strings.Join(words, "")))
}

// textAt is an argument as Lua writes it.
func (m *machine) textAt(i int) string {
	switch v := m.Get(i).(type) {
	case lua.LString:
		return string(v)
	case lua.LNumber:
		return numberText(float64(v), 14)
	}
	m.RaiseError("bad argument #%d: a %s is no text", i, m.Get(i).Type().String())
	return ""
}

// numberText is C's %.<digits>g.
func numberText(n float64, digits int) string {
	if n == math.Trunc(n) && math.Abs(n) < 1e14 {
		return strconv.FormatInt(int64(n), 10)
	}
	s := strconv.FormatFloat(n, 'g', digits, 64)
	mantissa, exponent, ok := strings.Cut(s, "e")
	if strings.Contains(mantissa, ".") {
		mantissa = strings.TrimRight(strings.TrimRight(mantissa, "0"), ".")
	}
	if !ok {
		return mantissa
	}
	return mantissa + "e" + exponent
}

func (m *machine) call() int {
	r := m.command()
	if r.Kind == KindError {
		m.Error(m.value(r), 0)
	}
	return m.give(m.value(r))
}

func (m *machine) pcall() int { return m.give(m.value(m.command())) }

func (m *machine) command() Reply {
	words := make([]string, m.GetTop())
	for i := range words {
		switch v := m.Get(i + 1).(type) {
		case lua.LString:
			words[i] = string(v)
		case lua.LNumber:
			words[i] = commandNumber(float64(v))
		default:
			return failed("ERR Lua redis lib command arguments must be strings or integers")
		}
	}
	if len(words) == 0 {
		return failed("ERR Please specify at least one argument for this redis.call() call")
	}
	return m.store.do(words)
}

// commandNumber is what Redis makes of a number: %.17g, so that a whole one
// stays whole.
func commandNumber(n float64) string {
	if n == math.Trunc(n) && math.Abs(n) < 1e17 {
		return strconv.FormatInt(int64(n), 10)
	}
	return numberText(n, 17)
}

func (m *machine) errorReply() int {
	return m.give(m.field("err", strings.TrimPrefix(m.CheckString(1), "-")))
}

func (m *machine) statusReply() int { return m.give(m.field("ok", m.CheckString(1))) }

func (m *machine) sha1hex() int {
	text := m.textAt(1)
	m.spend(len(text))
	sum := sha1.Sum([]byte(text))
	return m.give(lua.LString(hex.EncodeToString(sum[:])))
}

func (m *machine) log() int { return 0 }

func (m *machine) yes() int { return m.give(lua.LTrue) }
