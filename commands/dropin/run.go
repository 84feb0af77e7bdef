// How does a probed script run? In a Lua machine of its own that ends after a
// number of instructions and a number of bytes, with nothing in reach but the
// mock master.
package dropin

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	lua "github.com/yuin/gopher-lua"
)

const (
	// The longest lock script in use executes some 150 instructions a key.
	mostSteps = 5000
	mostBytes = 256 << 10 // of text and tables made
	// All probes of one script together: some 300 runs of 60 instructions are
	// usual. It bounds what a stranger's script costs to some 20 ms.
	mostWork  = 400_000
	mostWaste = 16 << 20
	mostItems = 256 // of an answer
	// Deep enough for any script; a call costs memory of this machine.
	callDepth    = 48
	registerSize = 256
	mostRegister = 4096
)

var errBudget = errors.New("out of budget")

// closed is what the Done of a budget that is used up answers.
var closed = func() <-chan struct{} { c := make(chan struct{}); close(c); return c }()

// budget counts instructions: the Lua machine asks Done before each. A timeout
// would make the outcome depend on how busy this machine is.
type budget struct {
	steps, bytes int
	store        *store
}

func (b *budget) Deadline() (time.Time, bool) { return time.Time{}, false }
func (b *budget) Value(any) any               { return nil }
func (b *budget) Err() error                  { return errBudget }

func (b *budget) Done() <-chan struct{} {
	if b.steps--; b.steps >= 0 {
		return nil
	}
	b.store.refuse("it runs for more than " + strconv.Itoa(mostSteps) + " instructions, or " + strconv.Itoa(mostWork) + " in all its probes")
	return closed
}

// spend counts bytes before they are made; false if there are none left.
func (b *budget) spend(bytes int) bool {
	if bytes < 0 || bytes > b.bytes {
		b.bytes = 0
		b.store.refuse("it makes more than " + strconv.Itoa(mostBytes) + " bytes")
		return false
	}
	b.bytes -= bytes
	return true
}

var _ context.Context = (*budget)(nil)

// machine is one Lua state. It serves all runs of a script, one after another:
// static.go has made sure that nothing a script can reach outlives a run but
// KEYS and ARGV, which are new for each.
type machine struct {
	*lua.LState
	program *program
	main    *lua.LFunction
	store   *store
	budget  *budget
}

func newMachine(p *program) *machine {
	m := &machine{program: p}
	m.LState = lua.NewState(lua.Options{
		SkipOpenLibs: true, MinimizeStackMemory: true, CallStackSize: callDepth,
		RegistrySize: registerSize, RegistryMaxSize: mostRegister,
	})
	m.furnish()
	m.main = m.NewFunctionFromProto(p.proto)
	return m
}

// run executes the script once. What it refuses to answer stands in the store.
func (p *program) run(call Call, s *store) (r Reply) {
	defer func() {
		if broken := recover(); broken != nil {
			p.machine = nil
			r = s.refuse("the Lua machine gives up on it")
		}
	}()
	if p.machine == nil {
		p.machine = newMachine(p)
	}
	m := p.machine
	b := &budget{steps: min(mostSteps, p.steps), bytes: min(mostBytes, p.bytes), store: s}
	steps, bytes := b.steps, b.bytes
	defer func() {
		p.steps -= steps - max(b.steps, 0)
		p.bytes -= bytes - b.bytes
	}()
	m.store, m.budget = s, b
	m.G.Global.RawSetString("KEYS", m.list(call.Keys))
	m.G.Global.RawSetString("ARGV", m.list(call.Args))
	m.SetContext(m.budget)
	m.SetTop(0)
	m.Push(m.main)
	if err := m.PCall(0, 1, nil); err != nil {
		return m.failure(err)
	}
	items := mostItems
	return m.reply(m.Get(-1), &items, 0)
}

func (m *machine) list(words []string) *lua.LTable {
	t := m.CreateTable(len(words), 0)
	for _, w := range words {
		t.Append(lua.LString(w))
	}
	return t
}

// failure is the answer of a script that ended with an error: a table with
// the master's words or words of its own, or an error of the Lua machine.
func (m *machine) failure(err error) Reply {
	var raised *lua.ApiError
	if errors.As(err, &raised) {
		if t, ok := raised.Object.(*lua.LTable); ok {
			if text, ok := t.RawGetString("err").(lua.LString); ok {
				return failed(string(text))
			}
		}
	}
	return Reply{Kind: KindError, Int: scriptFailed}
}

// scriptFailed in Int marks an error whose words are the Lua machine's.
const scriptFailed = 1

// reply turns a value of Lua into an answer, as Redis does: fractions are cut
// off, false is nil, a list ends at its first nil.
func (m *machine) reply(v lua.LValue, items *int, depth int) Reply {
	if *items--; *items < 0 || depth > 4 {
		return m.store.refuse("it answers more than " + strconv.Itoa(mostItems) + " values, or nests them")
	}
	switch v := v.(type) {
	case lua.LNumber:
		return number(int64(v))
	case lua.LString:
		return bulk(string(v))
	case lua.LBool:
		if v {
			return number(1)
		}
	case *lua.LTable:
		if text, ok := v.RawGetString("err").(lua.LString); ok {
			return failed(strings.TrimPrefix(string(text), "-"))
		}
		if text, ok := v.RawGetString("ok").(lua.LString); ok {
			return status(string(text))
		}
		list := Reply{Kind: KindArray}
		for i := 1; v.RawGetInt(i) != lua.LNil; i++ {
			list.Items = append(list.Items, m.reply(v.RawGetInt(i), items, depth+1))
			if m.store.refused != "" {
				break
			}
		}
		return list
	}
	return Reply{}
}

// value turns an answer of the mock master into a value of Lua.
func (m *machine) value(r Reply) lua.LValue {
	switch r.Kind {
	case KindInt:
		return lua.LNumber(r.Int)
	case KindBulk:
		return lua.LString(r.Text)
	case KindStatus:
		return m.field("ok", r.Text)
	case KindError:
		return m.field("err", r.Text)
	case KindArray:
		t := m.CreateTable(len(r.Items), 0)
		for i, item := range r.Items {
			t.RawSetInt(i+1, m.value(item))
		}
		return t
	}
	return lua.LFalse
}

func (m *machine) field(name, text string) *lua.LTable {
	t := m.CreateTable(0, 1)
	t.RawSetString(name, lua.LString(text))
	return t
}
