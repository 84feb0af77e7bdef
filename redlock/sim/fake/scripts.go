package fake

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"

	"redlockd/pool/wire"
)

// Scripts are compiled scripts. Masters of one goroutine share them: scripts keep nothing
// between two runs, and each run gets the memory of its master.
type Scripts struct {
	Texts  map[string]string // by SHA1
	state  *lua.LState
	known  map[string]*lua.LFunction // by SHA1
	master *Master                   // that runs the script
}

// NewScripts has no script yet.
func NewScripts() *Scripts {
	e := &Scripts{Texts: map[string]string{}, state: lua.NewState(lua.Options{SkipOpenLibs: true}), known: map[string]*lua.LFunction{}}
	for _, open := range []struct {
		name string
		open lua.LGFunction
	}{{lua.BaseLibName, lua.OpenBase}, {lua.TabLibName, lua.OpenTable}, {lua.StringLibName, lua.OpenString}, {lua.MathLibName, lua.OpenMath}} {
		e.state.Push(e.state.NewFunction(open.open))
		e.state.Push(lua.LString(open.name))
		e.state.Call(1, 0)
	}
	redis := e.state.NewTable()
	e.state.SetFuncs(redis, map[string]lua.LGFunction{
		"call":  func(l *lua.LState) int { return e.call(l, true) },
		"pcall": func(l *lua.LState) int { return e.call(l, false) },
		"sha1hex": func(l *lua.LState) int {
			l.Push(lua.LString(shaOf(l.ToString(1))))
			return 1
		},
	})
	e.state.SetGlobal("redis", redis)
	return e
}

func shaOf(script string) string {
	sum := sha1.Sum([]byte(script))
	return hex.EncodeToString(sum[:])
}

// load compiles a script.
func (e *Scripts) load(script string) (sha string, err error) {
	sha = shaOf(script)
	if e.known[sha] != nil {
		return sha, nil
	}
	chunk, err := parse.Parse(strings.NewReader(script), "script")
	if err != nil {
		return "", err
	}
	proto, err := lua.Compile(chunk, "script")
	if err != nil {
		return "", err
	}
	e.Texts[sha] = script
	e.known[sha] = e.state.NewFunctionFromProto(proto)
	return sha, nil
}

// run executes a script as EVALSHA does: words[2] keys, then the other arguments.
func (e *Scripts) run(m *Master, sha string, words []string) wire.Reply {
	n, err := strconv.Atoi(words[2])
	if err != nil || len(words) < 3+n {
		return refusal("ERR Number of keys can't be greater than number of args")
	}
	e.master = m
	e.state.SetGlobal("KEYS", e.words(words[3:3+n]))
	e.state.SetGlobal("ARGV", e.words(words[3+n:]))
	e.state.Push(e.known[sha])
	if err := e.state.PCall(0, 1, nil); err != nil {
		e.state.SetTop(0)
		message, _, _ := strings.Cut(err.Error(), "\n")
		return refusal("ERR " + message)
	}
	result := e.state.Get(-1)
	e.state.Pop(1)
	return fromLua(result)
}

func (e *Scripts) words(words []string) *lua.LTable {
	t := e.state.CreateTable(len(words), 0)
	for i, word := range words {
		t.RawSetInt(i+1, lua.LString(word))
	}
	return t
}

// call is redis.call, and redis.pcall unless it raises.
func (e *Scripts) call(l *lua.LState, raises bool) int {
	args := make([]string, l.GetTop())
	for i := range args {
		switch v := l.Get(i + 1).(type) {
		case lua.LString:
			args[i] = string(v)
		case lua.LNumber:
			args[i] = luaNumber(float64(v))
		default:
			l.RaiseError("Lua redis lib command arguments must be strings or integers")
		}
	}
	r := e.master.Execute(args)
	if r.Err != nil && raises {
		l.RaiseError("%s", r.Err.Error())
	}
	l.Push(e.toLua(r))
	return 1
}

// luaNumber is how a number becomes an argument: %.17g.
func luaNumber(f float64) string {
	if f == float64(int64(f)) && f < 1e17 && f > -1e17 {
		return strconv.FormatInt(int64(f), 10)
	}
	return fmt.Sprintf("%.17g", f)
}

func (e *Scripts) toLua(r wire.Reply) lua.LValue {
	switch r.Kind {
	case wire.ReplyInt:
		return lua.LNumber(r.Int)
	case wire.ReplyString:
		return lua.LString(r.Str)
	case ReplyStatus:
		return e.tagged("ok", r.Str)
	case wire.ReplyError:
		return e.tagged("err", r.Err.Error())
	case wire.ReplyArray:
		t := e.state.CreateTable(len(r.Items), 0)
		for i := range r.Items {
			t.RawSetInt(i+1, e.toLua(r.Items[i]))
		}
		return t
	}
	return lua.LFalse
}

func (e *Scripts) tagged(name, value string) *lua.LTable {
	t := e.state.NewTable()
	t.RawSetString(name, lua.LString(value))
	return t
}

func fromLua(v lua.LValue) wire.Reply {
	switch v := v.(type) {
	case lua.LNumber:
		return Number(int64(v))
	case lua.LString:
		return Text(string(v))
	case lua.LBool:
		if v {
			return Number(1)
		}
	case *lua.LTable:
		if s, is := v.RawGetString("ok").(lua.LString); is {
			return status(string(s))
		}
		if s, is := v.RawGetString("err").(lua.LString); is {
			return refusal(string(s))
		}
		out := List()
		for i := 1; ; i++ {
			item := v.RawGetInt(i)
			if item == lua.LNil {
				return out
			}
			out.Items = append(out.Items, fromLua(item))
		}
	}
	return null
}
