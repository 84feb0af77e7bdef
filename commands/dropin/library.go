// The functions of Lua that a probed script may use. Where the machine's own
// would take memory or time without asking, they are written anew.
package dropin

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

func (m *machine) tonumber() int {
	base := m.OptInt(2, 10)
	switch v := m.Get(1).(type) {
	case lua.LNumber:
		return m.give(v)
	case lua.LString:
		text := strings.Trim(string(v), " \t\n\v\f\r")
		if base != 10 {
			if n, err := strconv.ParseInt(text, min(max(base, 2), 36), 64); err == nil {
				return m.give(lua.LNumber(n))
			}
			return m.give(lua.LNil)
		}
		if n, err := strconv.ParseFloat(text, 64); err == nil && !strings.ContainsAny(text, "_pPxXiIn") {
			return m.give(lua.LNumber(n))
		}
		if n, err := strconv.ParseUint(strings.TrimPrefix(strings.ToLower(text), "0x"), 16, 63); err == nil && len(text) > 2 && (text[1] == 'x' || text[1] == 'X') {
			return m.give(lua.LNumber(n))
		}
	}
	return m.give(lua.LNil)
}

func (m *machine) tostring() int {
	switch v := m.CheckAny(1).(type) {
	case lua.LString, lua.LNumber:
		return m.give(lua.LString(m.textAt(1)))
	case lua.LBool:
		return m.give(lua.LString(v.String()))
	case *lua.LNilType:
		return m.give(lua.LString("nil"))
	}
	return m.end("it asks where something lies in memory")
}

func (m *machine) typeOf() int { return m.give(lua.LString(m.CheckAny(1).Type().String())) }

func (m *machine) next() int {
	k, v := m.CheckTable(1).Next(m.Get(2))
	if k == lua.LNil {
		return m.give(lua.LNil)
	}
	return m.give(k, v)
}

func (m *machine) pairs() int {
	return m.give(m.function((*machine).next), m.CheckTable(1), lua.LNil)
}

func (m *machine) ipairs() int {
	return m.give(m.function((*machine).inext), m.CheckTable(1), lua.LNumber(0))
}

func (m *machine) inext() int {
	i := m.CheckInt(2) + 1
	v := m.CheckTable(1).RawGetInt(i)
	if v == lua.LNil {
		return m.give(lua.LNil)
	}
	return m.give(lua.LNumber(i), v)
}

// choose is select.
func (m *machine) choose() int {
	top := m.GetTop()
	if m.Get(1) == lua.LString("#") {
		return m.give(lua.LNumber(top - 1))
	}
	n := m.CheckInt(1)
	if n < 0 {
		n = top + n
	}
	if n < 1 {
		m.RaiseError("bad argument #1 to 'select'")
	}
	return max(top-n, 0) // those on top of the stack
}

func (m *machine) unpack() int {
	t := m.CheckTable(1)
	from, to := m.OptInt(2, 1), m.OptInt(3, t.Len())
	if from > to {
		return 0
	}
	if to-from < 0 || to-from >= mostItems {
		return m.end("it unpacks more than " + strconv.Itoa(mostItems) + " values")
	}
	m.spend((to - from) * 16)
	for i := from; i <= to; i++ {
		m.Push(t.RawGetInt(i))
	}
	return to - from + 1
}

func (m *machine) assert() int {
	if lua.LVAsBool(m.CheckAny(1)) {
		return m.GetTop()
	}
	m.RaiseError("%s", m.OptString(2, "assertion failed!"))
	return 0
}

func (m *machine) raise() int {
	m.Error(m.CheckAny(1), 0)
	return 0
}

func (m *machine) rawequal() int { return m.give(lua.LBool(m.CheckAny(1) == m.CheckAny(2))) }

func (m *machine) sub() int {
	s := m.textAt(1)
	from, to := position(m.OptInt(2, 1), len(s)), position(m.OptInt(3, -1), len(s))
	if from = max(from, 1); from > min(to, len(s)) {
		return m.give(lua.LString(""))
	}
	return m.give(lua.LString(s[from-1 : min(to, len(s))]))
}

// position counts from the end if it is negative.
func position(i, length int) int {
	if i < 0 {
		return max(length+i+1, 0)
	}
	return i
}

func (m *machine) length() int { return m.give(lua.LNumber(len(m.textAt(1)))) }

func (m *machine) lower() int {
	s := m.textAt(1)
	m.spend(len(s))
	return m.give(lua.LString(asciiLower(s)))
}

func (m *machine) upper() int {
	s := m.textAt(1)
	m.spend(len(s))
	return m.give(lua.LString(upper(s)))
}

func asciiLower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c - 'A' + 'a'
		}
	}
	return string(b)
}

func (m *machine) bytes() int {
	s := m.textAt(1)
	from := position(m.OptInt(2, 1), len(s))
	to := min(position(m.OptInt(3, from), len(s)), len(s))
	from = max(from, 1)
	if to-from >= mostItems {
		return m.end("it takes a text of more than " + strconv.Itoa(mostItems) + " bytes apart")
	}
	for i := from; i <= to; i++ {
		m.Push(lua.LNumber(s[i-1]))
	}
	return max(to-from+1, 0)
}

func (m *machine) char() int {
	b := make([]byte, m.GetTop())
	for i := range b {
		b[i] = byte(m.CheckInt(i + 1))
	}
	return m.give(lua.LString(b))
}

func (m *machine) rep() int {
	s, n := m.textAt(1), max(m.CheckInt(2), 0)
	if len(s) > 0 && n > mostBytes/len(s) {
		n = mostBytes/len(s) + 1 // too many, without overflow
	}
	m.spend(len(s) * n)
	return m.give(lua.LString(strings.Repeat(s, n)))
}

func (m *machine) reverse() int {
	s := m.textAt(1)
	m.spend(len(s))
	b := make([]byte, len(s))
	for i := range b {
		b[i] = s[len(s)-1-i]
	}
	return m.give(lua.LString(b))
}

// find looks for plain text. A pattern can take longer than the universe.
func (m *machine) find() int {
	s, what := m.textAt(1), m.textAt(2)
	if !lua.LVAsBool(m.Get(4)) && strings.ContainsAny(what, "^$*+?.([%-") {
		return m.end("it looks for patterns in texts")
	}
	from := min(max(position(m.OptInt(3, 1), len(s)), 1), len(s)+1)
	m.spend(16 + len(s)/16)
	at := strings.Index(s[from-1:], what)
	if at < 0 {
		return m.give(lua.LNil)
	}
	return m.give(lua.LNumber(from+at), lua.LNumber(from+at+len(what)-1))
}

// format knows the verbs without width: %s %d %i %u %g %f %x %%.
func (m *machine) format() int {
	text, arg := m.textAt(1), 1
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '%' {
			b.WriteByte(text[i])
			continue
		}
		if i++; i == len(text) {
			m.RaiseError("invalid format")
		}
		if text[i] == '%' {
			b.WriteByte('%')
			continue
		}
		arg++
		switch text[i] {
		case 's':
			word := m.textAt(arg)
			m.spend(len(word))
			b.WriteString(word)
		case 'd', 'i', 'u':
			b.WriteString(strconv.FormatInt(int64(m.CheckNumber(arg)), 10))
		case 'x':
			b.WriteString(strconv.FormatInt(int64(m.CheckNumber(arg)), 16))
		case 'f':
			fmt.Fprintf(&b, "%f", float64(m.CheckNumber(arg)))
		case 'g':
			b.WriteString(numberText(float64(m.CheckNumber(arg)), 6))
		default:
			return m.end("it formats with " + short("%"+text[i:i+1]) + ", which lock scripts have no use for")
		}
	}
	m.spend(len(text))
	return m.give(lua.LString(b.String()))
}

func rounding(f func(float64) float64) func(*machine) int {
	return func(m *machine) int { return m.give(lua.LNumber(f(float64(m.CheckNumber(1))))) }
}

func (m *machine) max() int { return m.best(math.Max) }
func (m *machine) min() int { return m.best(math.Min) }

func (m *machine) best(f func(a, b float64) float64) int {
	n := float64(m.CheckNumber(1))
	for i := 2; i <= m.GetTop(); i++ {
		n = f(n, float64(m.CheckNumber(i)))
	}
	return m.give(lua.LNumber(n))
}

func (m *machine) insert() int {
	t := m.CheckTable(1)
	n := t.Len()
	if m.GetTop() == 2 {
		t.RawSetInt(n+1, m.Get(2))
		return 0
	}
	at := m.CheckInt(2)
	if at < 1 || at > n+1 {
		return m.end("it inserts outside of a list")
	}
	m.spend((n - at) * 16)
	t.Insert(at, m.Get(3))
	return 0
}

func (m *machine) remove() int {
	t := m.CheckTable(1)
	n := t.Len()
	at := m.OptInt(2, n)
	if n == 0 || at < 1 || at > n {
		return m.give(lua.LNil)
	}
	m.spend((n - at) * 16)
	return m.give(t.Remove(at))
}

// join is table.concat.
func (m *machine) join() int {
	t, between := m.CheckTable(1), m.OptString(2, "")
	from, to := m.OptInt(3, 1), m.OptInt(4, t.Len())
	if to-from >= mostItems {
		return m.end("it joins more than " + strconv.Itoa(mostItems) + " texts")
	}
	var words []string
	for i := from; i <= to; i++ {
		switch v := t.RawGetInt(i).(type) {
		case lua.LString:
			words = append(words, string(v))
		case lua.LNumber:
			words = append(words, numberText(float64(v), 14))
		default:
			m.RaiseError("invalid value in table for 'concat'")
		}
		m.spend(len(words[len(words)-1]) + len(between))
	}
	return m.give(lua.LString(strings.Join(words, between)))
}

func (m *machine) getn() int { return m.give(lua.LNumber(m.CheckTable(1).Len())) }
