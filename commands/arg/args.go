// arguments reads a command's arguments: a cursor for option words in any order and
// any case, and one strict reading of integers.

package arg

import (
	"fmt"
	"math"
)

// arguments walks over the words of a call from left to right.
type Words struct {
	words []string
	at    int    // the next word
	known []Spec // the options of the command, see optionsOf
	given uint32 // one bit for each option that was already given
}

// readWords starts behind the command's own word. options are those of its row.
func Read(args []string, options []Spec) Words {
	return Words{words: args, at: 1, known: options}
}

func (a *Words) More() bool { return a.at < len(a.words) }

// Next is the next positional argument; the table has checked that it exists.
func (a *Words) Next() string {
	s := a.words[a.at]
	a.at++
	return s
}

// Option takes an option word, and its value if the row has one for it. Each option
// may be given once.
func (a *Words) Option() (name, value string, err error) {
	given := a.Next()
	for i := range a.known {
		name = a.known[i].Word
		if !IsWord(given, name) {
			continue
		}
		if a.given&(1<<i) != 0 {
			return name, "", fmt.Errorf("option %s is given twice", name)
		}
		a.given |= 1 << i
		if a.known[i].Kind == KindWord {
			return name, "", nil
		}
		if !a.More() {
			return name, "", fmt.Errorf("option %s needs a value", name)
		}
		return name, a.Next(), nil
	}
	return "", "", fmt.Errorf("unknown option %s", Quoted(given))
}

// NextInteger takes the next argument if it is an integer: one that may be left out.
func (a *Words) NextInteger() (string, bool) {
	if !a.More() {
		return "", false
	}
	if _, ok := ParseInteger(a.words[a.at]); !ok {
		return "", false
	}
	return a.Next(), true
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

// ParseCount reads a decimal integer of at least 0: ASCII digits only, no
// sign, no space, no leading zero, at most 2⁶³−1. "007" is refused because
// it may be meant as an octal number.
func ParseCount(s string) (int64, bool) {
	if s == "" || len(s) > 1 && s[0] == '0' {
		return 0, false
	}
	var n int64
	for i := range len(s) {
		digit := int64(s[i]) - '0'
		if digit < 0 || digit > 9 || n > (math.MaxInt64-digit)/10 {
			return 0, false
		}
		n = n*10 + digit
	}
	return n, true
}

// ParseInteger also accepts one minus sign in front of a number that is not 0.
// It is for arguments for which Redis has a text of its own about negative numbers.
func ParseInteger(s string) (int64, bool) {
	if s == "" || s[0] != '-' {
		return ParseCount(s)
	}
	n, ok := ParseCount(s[1:])
	return -n, ok && n != 0
}

// Quoted shows a caller's value in an error: short, and in quotes. Never used
// for tokens, which are secrets.
func Quoted(value string) string {
	const most = 64
	if len(value) > most {
		return "'" + value[:most] + "...'"
	}
	return "'" + value + "'"
}
