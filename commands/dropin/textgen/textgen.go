// Package textgen writes scripts of the language of lock scripts, and some that are not quite of it, at random. The
// referees of package dropin and of the daemon run them beside a redis-server.
package textgen

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// Writer writes one script.
type Writer struct {
	*rand.Rand
	keys    int
	locals  []string
	depth   int
	guarded bool   // it changes a lock that is not free only where it has compared the token
	own     string // the key whose token was compared, in a guarded script
}

// Token is the first argument of each call.
const Token = "f3Kq8Zr1vN5tY7wB2mXc9dLh"

// Script is a text with the keys and arguments of a call.
func Script(random *rand.Rand) (text string, keys, args []string) {
	w := &Writer{Rand: random, keys: 1 + random.IntN(2), guarded: random.IntN(2) == 0}
	text = strings.TrimSpace(w.block(1 + random.IntN(4)))
	return text, []string{"k1", "k2"}[:w.keys], []string{Token, w.pick("20000", "20000", "40000", "300"), w.pick("10", "0", "yes", "-1", "")}
}

func (w *Writer) pick(some ...string) string { return some[w.IntN(len(some))] }

func (w *Writer) key() string { return fmt.Sprintf("KEYS[%d]", 1+w.IntN(w.keys)) }

// value is a token or a time: mostly an argument as it is.
func (w *Writer) value() string {
	return w.pick("ARGV[1]", "ARGV[1]", "ARGV[1]", "ARGV[2]", "ARGV[2]", "ARGV[3]", "tonumber(ARGV[2])", "5000", "'20'", "KEYS["+strconv.Itoa(w.keys)+"]")
}

func (w *Writer) call() string {
	k := w.key()
	if w.guarded {
		return w.guardedCall(k)
	}
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

// guardedCall writes a call of a lock script: reads and acquires anywhere, and changes of what the token holds.
func (w *Writer) guardedCall(k string) string {
	switch n := w.IntN(12); {
	case w.own == "" && n < 2:
		return fmt.Sprintf("redis.call('set', %s, ARGV[1], 'NX', 'PX', ARGV[2])", k)
	case w.own == "" && n < 7, n < 4:
		return fmt.Sprintf("redis.call('%s', %s)", w.pick("get", "get", "exists", "pttl", "ttl"), k)
	case w.own == "":
		return "tonumber(" + w.pick("ARGV[2]", "'5'", "ARGV[3]") + ")"
	case n < 7:
		return fmt.Sprintf("redis.call('%s', %s)", w.pick("del", "del", "unlink", "getdel"), w.own)
	case n < 11:
		return fmt.Sprintf("redis.call('%s', %s, ARGV[2]%s)", w.pick("pexpire", "pexpire", "expire"), w.own, w.pick("", "", "", "", ", 'GT'", ", 'LT'", ", 'NX'", ", 'XX'"))
	}
	return fmt.Sprintf("redis.call('set', %s, ARGV[1], 'PX', ARGV[2]%s)", w.own, w.pick("", ", 'XX'"))
}

// guard is a branch where the token holds a key, and one where it does not.
func (w *Writer) guard() string {
	k, outer := w.key(), w.own
	w.own = k
	then := w.block(1 + w.IntN(2))
	w.own = outer
	other := ""
	if w.IntN(2) == 0 {
		other = "else " + w.block(1)
	}
	return fmt.Sprintf("if redis.call('get', %s) == ARGV[1] then %s%send ", k, then, other)
}

func (w *Writer) expression() string {
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
		return w.pick("redis.status_reply('FINE')", "redis.error_reply('NOT FINE')", "redis.error_reply('-BAD luck')", "{err = 'NO way'}", "{err = 'no way'}", "{err = '-no way'}", "{ok = 'OK'}", "redis.error_reply('bad')", "#KEYS", "#ARGV", "ARGV[7]")
	}
	return w.condition()
}

func (w *Writer) condition() string {
	if w.IntN(2) == 0 {
		return fmt.Sprintf("redis.call('get', %s) %s %s", w.key(), w.pick("==", "==", "~="), w.pick("ARGV[1]", "ARGV[1]", "ARGV[1]", "false", "'x'", "KEYS["+strconv.Itoa(w.keys)+"]"))
	}
	return fmt.Sprintf("(%s %s %s)", w.expression(), w.pick("==", "~=", "<", "<=", ">", ">=", "=="), w.expression())
}

func (w *Writer) block(statements int) string {
	text, outer := "", len(w.locals)
	for range statements {
		if w.guarded && w.own == "" && w.IntN(2) == 0 {
			text += w.guard()
			continue
		}
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
			if call := w.call(); strings.HasPrefix(call, "redis.") {
				text += call + " "
			}
		default:
			text += "do return " + w.expression() + " end "
		}
	}
	w.locals = w.locals[:outer]
	return text
}
