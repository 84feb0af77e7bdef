package dropin

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
)

// writer makes scripts of the language, and some that are not quite of it, at random.
type writer struct {
	*rand.Rand
	keys   int
	locals []string
	depth  int
}

func (w *writer) pick(some ...string) string { return some[w.IntN(len(some))] }

func (w *writer) key() string { return fmt.Sprintf("KEYS[%d]", 1+w.IntN(w.keys)) }

// value is a token or a time: mostly an argument as it is.
func (w *writer) value() string {
	return w.pick("ARGV[1]", "ARGV[1]", "ARGV[1]", "ARGV[2]", "ARGV[2]", "ARGV[3]", "tonumber(ARGV[2])", "5000", "'20'", "KEYS["+strconv.Itoa(w.keys)+"]")
}

func (w *writer) call() string {
	k := w.key()
	switch w.IntN(16) {
	case 0, 1, 2, 3:
		return fmt.Sprintf("redis.call('get', %s)", k)
	case 4, 5:
		return fmt.Sprintf("redis.call('set', %s, ARGV[1], 'NX', 'PX', %s)", k, w.pick("ARGV[2]", "ARGV[2]", "tonumber(ARGV[2])", "9000"))
	case 6:
		return fmt.Sprintf("redis.call('set', %s, %s, 'PX', ARGV[2]%s)", k, w.value(), w.pick("", ", 'XX'"))
	case 7, 8:
		return fmt.Sprintf("redis.call('%s', %s)", w.pick("del", "unlink", "exists", "getdel", "persist"), k)
	case 9, 10:
		return fmt.Sprintf("redis.call('%s', %s, %s%s)", w.pick("pexpire", "pexpire", "expire"), k, w.pick("ARGV[2]", "ARGV[2]", "tonumber(ARGV[2])", "7000", "0", "ARGV[3]"), w.pick("", "", "", ", 'GT'", ", 'LT'", ", 'NX'", ", 'XX'"))
	case 11, 12:
		return fmt.Sprintf("redis.call('%s', %s)", w.pick("pttl", "pttl", "ttl"), k)
	case 13:
		return fmt.Sprintf("redis.call('setnx', %s, %s)", k, w.value())
	case 14:
		return fmt.Sprintf("redis.call('psetex', %s, ARGV[2], %s)", k, w.value())
	}
	return fmt.Sprintf("redis.call('exists', %s)", k)
}

func (w *writer) expression() string {
	if w.depth++; w.depth > 4 {
		w.depth--
		return w.pick("0", "1", "nil", "false", "'x'", "ARGV[1]")
	}
	defer func() { w.depth-- }()
	if len(w.locals) > 0 && w.IntN(3) == 0 {
		return w.locals[w.IntN(len(w.locals))]
	}
	switch w.IntN(18) {
	case 0, 1, 2, 3, 4:
		return w.call()
	case 5:
		return w.value()
	case 6:
		return w.pick("0", "1", "-1", "2", "-2", "nil", "false", "true", "'OK'", "''", "-0", "100000000000000")
	case 7:
		return "not " + w.expression()
	case 8:
		return "(" + w.expression() + " and " + w.expression() + ")"
	case 9:
		return "(" + w.expression() + " or " + w.expression() + ")"
	case 10:
		return "{" + w.expression() + ", " + w.expression() + "}"
	case 11:
		return fmt.Sprintf("(%s %s %s)", w.expression(), w.pick("+", "-", ".."), w.expression())
	case 12:
		return w.pick("tostring", "tonumber") + "(" + w.expression() + ")"
	case 13:
		return w.pick("redis.status_reply('FINE')", "redis.error_reply('NOT FINE')", "redis.error_reply('-BAD luck')", "{err = 'NO way'}", "#KEYS", "#ARGV", "ARGV[7]")
	}
	return w.condition()
}

func (w *writer) condition() string {
	if w.IntN(2) == 0 {
		return fmt.Sprintf("redis.call('get', %s) %s %s", w.key(), w.pick("==", "==", "~="), w.pick("ARGV[1]", "ARGV[1]", "ARGV[1]", "false", "'x'", "KEYS["+strconv.Itoa(w.keys)+"]"))
	}
	return fmt.Sprintf("(%s %s %s)", w.expression(), w.pick("==", "~=", "<", "<=", ">", ">=", "=="), w.expression())
}

func (w *writer) block(statements int) string {
	text, outer := "", len(w.locals)
	for range statements {
		switch w.IntN(8) {
		case 0, 1:
			value := w.expression()
			name := string(rune('a' + len(w.locals)))
			w.locals = append(w.locals, name)
			text += fmt.Sprintf("local %s = %s ", name, value)
		case 2, 3, 4:
			text += fmt.Sprintf("if %s then %s", w.condition(), w.block(1+w.IntN(2)))
			if w.IntN(2) == 0 {
				text += "else " + w.block(1+w.IntN(2))
			}
			text += "end "
		case 5:
			text += w.call() + " "
		default:
			text += "do return " + w.expression() + " end "
		}
	}
	w.locals = w.locals[:outer]
	return text
}

// Scripts that nobody has thought of: where the evaluator has a class, a real master answers the same
// and does the same, from every state of the keys. DROPIN_DIFFERENTIAL says how many are written.
func TestEvaluator_AgreesWithAMasterOnGeneratedScripts(t *testing.T) {
	m := startMaster(t)
	count, seed := 1500, uint64(1) // always the same in the short form
	if n, err := strconv.Atoi(os.Getenv("DROPIN_DIFFERENTIAL")); err == nil {
		count = n
	}
	if n, err := strconv.ParseUint(os.Getenv("DROPIN_SEED"), 10, 64); err == nil {
		seed = n
	}
	random := rand.New(rand.NewPCG(seed, 7))
	served := make(map[Op]int)
	const token = "f3Kq8Zr1vN5tY7wB2mXc9dLh"
	for i := range count {
		w := &writer{Rand: random, keys: 1 + random.IntN(2)}
		text := strings.TrimSpace(w.block(1 + random.IntN(4)))
		call := ScriptCall{Keys: []string{"k1", "k2"}[:w.keys], Args: []string{token, w.pick("20000", "20000", "40000", "300"), w.pick("10", "0", "yes", "-1", "")}}
		class, _, err := classOfText(text, call)
		if err != nil || class.Fits(call) != nil {
			continue
		}
		var states [][]keyIn
		for _, k := range keysIn(token) {
			if w.keys == 1 {
				states = append(states, []keyIn{k})
				continue
			}
			for _, l := range keysIn(token) {
				states = append(states, []keyIn{k, l})
			}
		}
		own := class.TokenOf(call)
		for s := range states {
			for n := range states[s] {
				states[s][n] = states[s][n].of(own, token)
			}
		}
		results, ok := m.runs(text, call, states)
		if !ok {
			t.Fatalf("seed %d, script %d is served and does not compile:\n%s", seed, i, text)
		}
		served[class.Op]++
		for s, r := range results {
			if diff := m.differsAgain(text, class, call, states[s], r); diff != "" {
				t.Fatalf("seed %d, script %d, %s, args %q, %+v: %s\n%s", seed, i, class.Op, call.Args, states[s], diff, text)
			}
		}
		if i%500 == 0 {
			m.do("SCRIPT", "FLUSH")
		}
	}
	t.Logf("seed %d: of %d scripts %v", seed, count, served)
	for _, op := range []Op{Acquire, Release, Extend, Read, Discard, Overwrite} {
		if count >= 4000 && served[op] == 0 {
			t.Errorf("seed %d: no %s among %d scripts", seed, op, count)
		}
	}
}

// of is the state for a class with another token than the usual one; "" is a class without one, to
// which every holder is alike.
func (k keyIn) of(own, usual string) keyIn {
	switch {
	case own == usual:
	case own == "" && (k.state == HeldByOther || k.state == OtherNoExpiry):
		k.state = map[KeyState]KeyState{HeldByOther: HeldBySelf, OtherNoExpiry: NoExpiry}[k.state]
	case own != "" && (k.state == HeldBySelf || k.state == NoExpiry):
		k.value = own
	}
	return k
}
