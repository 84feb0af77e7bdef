// Words reads a command's arguments from left to right: names, tokens and times within
// their limits, and option words in any order and any case.

package arg

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"redlockd/commands/access"
	"redlockd/proxy/resp"
	"redlockd/redlock"
)

// Words walks over the words of a call. The first mistake ends the walk: Err returns it,
// and all further words read as zero.
type Words struct {
	words []string
	at    int    // the next word
	known []Spec // the options of the command, see Options
	given uint32 // one bit for each option that was already given
	keyed bool   // the options stand behind a number of keys
	err   error
}

// Read starts behind the command's own word. options are those of its row.
func Read(args []string, options []Spec) Words {
	return Words{words: args, at: 1, known: options}
}

func (w *Words) Err() error { return w.err }

// Fail notes a mistake; nil is none.
func (w *Words) Fail(mistake error) {
	if w.err == nil {
		w.err = mistake
	}
}

func (w *Words) More() bool { return w.err == nil && w.at < len(w.words) }

func (w *Words) Next() string {
	if !w.More() {
		return ""
	}
	w.at++
	return w.words[w.at-1]
}

// Option takes an option word. Its value, if the row has one for it, is the next word.
// Each option may be given once.
func (w *Words) Option() (name string) {
	given := w.Next()
	for i := range w.known {
		name = w.known[i].Word
		if !IsWord(given, name) {
			continue
		}
		if w.given&(1<<i) != 0 {
			w.Fail(fmt.Errorf("option %s is given twice", name))
		}
		w.given |= 1 << i
		if w.known[i].Kind != KindWord && !w.More() {
			w.Fail(fmt.Errorf("option %s needs a value", name))
		}
		return name
	}
	if w.keyed {
		w.Fail(fmt.Errorf("unknown option %s behind the keys: numkeys must be their number", Quoted(given)))
	}
	w.Fail(fmt.Errorf("unknown option %s%s", Quoted(given), optionHint(given)))
	return ""
}

// optionHint completes the error for an option of SET.
func optionHint(given string) string {
	switch {
	case IsWord(given, "PX"), IsWord(given, "EX"):
		return "; the time stands before the options and without " + given + ", in milliseconds"
	case IsWord(given, "NX"):
		return "; it is not needed, a lock is taken only if it is free"
	case IsWord(given, "XX"):
		return "; DEXTEND prolongs a lock that is held"
	}
	return ""
}

// Key, Counter and Work are the name of a lock, of a counter and of a piece of work.
func (w *Words) Key() redlock.Key     { return w.name("lock name") }
func (w *Words) Counter() redlock.Key { return w.name("counter name") }
func (w *Words) Work() redlock.Key    { return w.name("name") }

func (w *Words) name(what string) redlock.Key {
	name, err := parseName(what, w.Next())
	w.Fail(err)
	return name
}

// Keys are the number of keys and the keys. Naming one twice is refused, because it is
// a mistake more often than it is meant. Without a mistake there is at least one.
func (w *Words) Keys() []redlock.Key {
	n := int(w.Int("numkeys", Bounds{Min: 1, Max: MaxKeys}))
	if left := len(w.words) - w.at; n > left {
		w.Fail(fmt.Errorf("numkeys is %d, but %d arguments follow it", n, left))
	}
	w.keyed = true
	keys := make([]redlock.Key, 0, n)
	for len(keys) < n && w.err == nil {
		key := w.Key()
		if slices.Contains(keys, key) {
			w.Fail(fmt.Errorf("key %s is given twice", Quoted(string(key))))
		}
		keys = append(keys, key)
	}
	return keys
}

// EndOfKeys refuses words behind the keys.
func (w *Words) EndOfKeys() {
	if w.More() {
		w.Fail(fmt.Errorf("unexpected argument %s behind the keys: numkeys must be their number", Quoted(w.Next())))
	}
}

// Token is a token. Tokens are secrets: the error shows its length only.
func (w *Words) Token() redlock.Token {
	s := w.Next()
	if len(s) < minTokenBytes || len(s) > MaxTokenBytes {
		w.Fail(fmt.Errorf("invalid token: %s, allowed are %d to %d", inBytes(len(s)), minTokenBytes, MaxTokenBytes))
	}
	if isPythonBytes(s) {
		w.Fail(errors.New("invalid token: it is the text b'...' that Python makes of bytes; give the token as it was received, or token.decode()"))
	}
	return redlock.Token(s)
}

// inBytes is a length that an error names.
func inBytes(n int) string {
	if n == 1 {
		return "1 byte"
	}
	return strconv.Itoa(n) + " bytes"
}

// isPythonBytes reports whether a token went through str(): it holds nothing, and its lock would stay.
func isPythonBytes(s string) bool {
	return len(s) > 3 && s[0] == 'b' && (s[1] == '\'' || s[1] == '"') && s[len(s)-1] == s[1]
}

// Meta is the note for people, as is Note under another name.
func (w *Words) Meta() string { return w.Note("META") }

func (w *Words) Note(what string) string {
	s := w.Next()
	if len(s) > maxMetaBytes {
		w.Fail(fmt.Errorf("invalid %s: %d bytes, allowed are 0 to %d", what, len(s), maxMetaBytes))
	}
	return s
}

// Result reads the text that a worker leaves.
func (w *Words) Result() string {
	s := w.Next()
	if len(s) > maxResultBytes {
		w.Fail(fmt.Errorf("invalid RESULT: %d bytes, allowed are 0 to %d; keep more elsewhere, and its place here", len(s), maxResultBytes))
	}
	return s
}

// Int is an integer; what names the argument.
func (w *Words) Int(what string, b Bounds) int64 {
	s := w.Next()
	n, ok := ParseCount(s)
	if ok && b.Min <= n && n <= b.Max {
		return n
	}
	hint := ""
	if b.unit != "" {
		hint = timeHint(s)
	}
	w.Fail(fmt.Errorf("%s %s is not an integer or out of range, allowed are %s%s", what, Quoted(s), b, hint))
	return 0
}

// Time is a time in milliseconds. They are compared before they become a time.Duration,
// which cannot hold all that a client may send: clients do send 9·10¹⁵ of them.
func (w *Words) Time(what string, b Bounds) time.Duration {
	return time.Duration(w.Int(what, b)) * time.Millisecond
}

func (w *Words) TTL(longest time.Duration) time.Duration {
	s, least, most := w.Next(), MinTTL.Milliseconds(), longest.Milliseconds()
	ms, ok := ParseCount(s)
	switch {
	case !ok || ms < least:
		w.Fail(fmt.Errorf("ttl %s is not an integer or out of range, allowed are %d to %d ms%s", Quoted(s), least, most, timeHint(s)))
	case ms > most:
		w.Fail(fmt.Errorf("ttl %s exceeds max-ttl, allowed are %d to %d ms (--max-ttl)", Quoted(s), least, most))
	}
	return time.Duration(ms) * time.Millisecond
}

// Delay is the time of the option DELAY of a lock with this ttl.
func (w *Words) Delay(ttl, longest time.Duration) time.Duration {
	delay := w.Time("DELAY", Milliseconds(time.Millisecond, longest, "--max-ttl"))
	if ttl+delay > longest {
		w.Fail(fmt.Errorf("ttl and DELAY are %d ms together, allowed are at most %d ms (--max-ttl)", (ttl + delay).Milliseconds(), longest.Milliseconds()))
	}
	return delay
}

// Wait is the time of the option WAIT; 0 is for ever, which ends as every wait does.
func (w *Words) Wait(longest time.Duration) time.Duration {
	if wait := w.Time("WAIT", Milliseconds(0, longest, "--max-wait")); wait > 0 {
		return wait
	}
	return longest
}

// IntegerFollows reports whether the next word is an integer: one that may be left out.
func (w *Words) IntegerFollows() bool {
	if !w.More() {
		return false
	}
	_, ok := ParseInteger(w.words[w.at])
	return ok
}

// ParseKey checks the name of a lock: any bytes, NUL and line breaks included.
func ParseKey(s string) (redlock.Key, error) { return parseName("lock name", s) }

func parseName(what, s string) (redlock.Key, error) {
	if len(s) < 1 || len(s) > maxKeyBytes {
		return "", fmt.Errorf("invalid %s: %d bytes, allowed are 1 to %d", what, len(s), maxKeyBytes)
	}
	if strings.HasPrefix(s, access.ReservedPrefix) {
		return "", fmt.Errorf("invalid %s %s: names beginning with '%s' are reserved", what, Quoted(s), access.ReservedPrefix)
	}
	return redlock.Key(s), nil
}

// IsWord compares with an upper-case ASCII word. strings.EqualFold would also
// accept letters outside of ASCII, such as the Kelvin sign for K.
func IsWord(s, upper string) bool {
	if len(s) != len(upper) {
		return false
	}
	for i := range len(s) {
		b := s[i]
		if 'a' <= b && b <= 'z' {
			b -= 'a' - 'A'
		}
		if b != upper[i] {
			return false
		}
	}
	return true
}

// ParseCount reads a decimal integer of at least 0. "007" is refused because it may be meant as
// an octal number.
func ParseCount(s string) (int64, bool) {
	n, ok := resp.ParseInteger(s)
	return n, ok && n >= 0
}

// ParseInteger is for arguments for which Redis has a text of its own about negative numbers.
func ParseInteger(s string) (int64, bool) { return resp.ParseInteger(s) }

// Quoted shows a caller's value in an error: short, and in quotes. Never used
// for tokens, which are secrets.
func Quoted(value string) string {
	const most = 64
	if len(value) > most {
		return "'" + value[:most] + "...'"
	}
	return "'" + value + "'"
}

// Every limit is checked before anything is allocated or sent. A refusal states the value, what is
// allowed and, where an operator can change it, the option.
const (
	maxKeyBytes  = 512
	maxMetaBytes = 512
	// maxResultBytes bounds what each master keeps of done work.
	maxResultBytes = 1024

	// A token shorter than 8 bytes is too easily chosen twice.
	minTokenBytes = 8
	MaxTokenBytes = 512

	// Below 10 ms nothing would be left after a round trip and the drift allowance.
	MinTTL = 10 * time.Millisecond

	// MaxKeys of one command: one script a master reads all of them at once.
	MaxKeys = 64
)

// Bounds are the ends of a range, both allowed.
type Bounds struct {
	Min, Max int64
	unit     string // " ms", "" for plain numbers
	option   string // "--max-ttl" if it decides the upper end, else ""
}

func Milliseconds(least, most time.Duration, option string) Bounds {
	return Bounds{least.Milliseconds(), most.Milliseconds(), " ms", option}
}

// timeHint completes the error for a time with a unit, or with the word that SET has before it.
func timeHint(s string) string {
	d, err := time.ParseDuration(s)
	switch {
	case err == nil && d >= time.Millisecond:
		return fmt.Sprintf("; times are milliseconds: %d, not %s", d.Milliseconds(), Quoted(s))
	case IsWord(s, "PX"), IsWord(s, "EX"):
		return "; the time stands without " + s + ", in milliseconds"
	}
	if f, err := strconv.ParseFloat(s, 64); err == nil && strings.Contains(s, ".") && f >= 1 && f == math.Trunc(f) && f < 1e15 {
		return fmt.Sprintf("; times are whole milliseconds: %.0f, not %s", f, Quoted(s))
	}
	return ""
}

func (b Bounds) String() string {
	text := fmt.Sprintf("%d to %d%s", b.Min, b.Max, b.unit)
	if b.option != "" {
		text += " (" + b.option + ")"
	}
	return text
}
