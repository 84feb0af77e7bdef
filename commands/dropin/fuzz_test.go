package dropin

import (
	"context"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"
)

// FuzzRecognise: whatever text a client sends, with whatever keys and arguments, its
// evaluation ends within its steps and nothing panics. What is accepted ends in a Lua
// machine, too, whatever its commands answer; its class fits the call, has an outcome
// in every state, and is the same behind a comment. Keys and arguments
// are separated by NULs.
func FuzzRecognise(f *testing.F) {
	for _, spellings := range behaviours {
		for _, text := range spellings {
			f.Add(text, "orders", "f3Kq8Zr1vN5tY7wB2mXc9dLh\x0020000")
		}
	}
	for _, text := range []string{extendsInTime, takesBatch, inspects} {
		f.Add(text, "a\x00b", "f3Kq8Zr1vN5tY7wB2mXc9dLh\x002000\x0020000")
	}
	for _, text := range adversaries {
		f.Add(text, "orders\x00signal", "f3Kq8Zr1vN5tY7wB2mXc9dLh\x0020000\x00yes")
	}
	f.Fuzz(func(t *testing.T, text, keys, args string) {
		call := ScriptCall{Keys: strings.Split(keys, "\x00"), Args: strings.Split(args, "\x00")}
		class, _, err := classOfText(text, call)
		if err != nil {
			return
		}
		ends(t, text, call)
		if class.Fits(call) != nil {
			return // known for other arguments
		}
		views := make([]KeyView, class.Keys-len(class.Others))
		for state := range keyStates {
			for i := range views {
				views[i] = KeyView{state, "somebody else's token", 1000}
			}
			if _, _, err := class.Outcome(call, views); err != nil {
				t.Fatalf("%s has no outcome in state %d: %v", described(class), state, err)
			}
		}
		if strings.HasPrefix(text, "#") {
			return // only the first line may be that
		}
		if again, _, err := classOfText("-- again\n"+text, call); err != nil || described(again) != described(class) {
			t.Fatalf("a comment makes it another class: %v", err)
		}
	})
}

// instructions counts what a Lua machine runs: the machine calls Done before each.
type instructions struct {
	context.Context
	left int
}

func (i *instructions) Done() <-chan struct{} {
	if i.left--; i.left >= 0 {
		return nil
	}
	closed := make(chan struct{})
	close(closed)
	return closed
}

// ends runs an accepted script. Its commands answer one of a few things in turn, as
// no master does; the script may fail, but it must end.
func ends(t *testing.T, text string, call ScriptCall) {
	t.Helper()
	if strings.HasPrefix(text, "#!") {
		_, text, _ = strings.Cut(text, "\n")
	}
	for first := range 6 {
		l := lua.NewState(lua.Options{SkipOpenLibs: true})
		calls := first
		answer := func(l *lua.LState) int {
			calls++
			l.Push([]lua.LValue{lua.LFalse, lua.LNumber(1), lua.LString(call.Args[0]), lua.LNumber(0), lua.LNumber(-1), lua.LString("another")}[calls%6])
			return 1
		}
		for _, open := range []struct {
			name string
			open lua.LGFunction
		}{{lua.BaseLibName, lua.OpenBase}, {lua.TabLibName, lua.OpenTable}} {
			l.Push(l.NewFunction(open.open))
			l.Push(lua.LString(open.name))
			l.Call(1, 0)
		}
		redis := l.NewTable()
		for _, name := range []string{"call", "pcall", "status_reply", "error_reply"} {
			redis.RawSetString(name, l.NewFunction(answer))
		}
		for name, value := range map[string]lua.LValue{"redis": redis, "server": redis, "KEYS": list(l, call.Keys), "ARGV": list(l, call.Args)} {
			l.SetGlobal(name, value)
		}
		counted := &instructions{context.Background(), 200_000}
		l.SetContext(counted)
		_ = l.DoString(text) // it may fail
		if l.Close(); counted.left < 0 {
			t.Fatalf("it runs for more than 200,000 instructions:\n%s", text)
		}
		if most := (len(text)/10 + 1) * (1 + len(call.Keys)); calls-first > most {
			t.Fatalf("it calls %d commands, allowed are %d:\n%s", calls-first, most, text)
		}
	}
}

func list(l *lua.LState, words []string) *lua.LTable {
	t := l.NewTable()
	for _, word := range words {
		t.Append(lua.LString(word))
	}
	return t
}

// FuzzParseSet: no words panic, and what is read has the times it must have.
func FuzzParseSet(f *testing.F) {
	for _, seed := range []string{"k v", "k v NX PX 20000", "k v px 1 nx", "k v EXAT 9223372036854775807", "k v IFEQ x GET KEEPTTL", "k"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		r, err := ParseSet(append([]string{"SET"}, strings.Split(line, " ")...))
		timed := r.Expiry.Kind == After || r.Expiry.Kind == At
		if err == nil && timed != (r.Expiry.MS > 0) {
			t.Fatalf("%q is read as %+v", line, r)
		}
	})
}
