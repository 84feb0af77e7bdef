// Key patterns of users. A pattern is a glob of * (any run of bytes) and ? (any one
// byte); a backslash takes away the meaning of the byte after it. Matching costs one
// step of a few machine words per byte of the name, whatever the pattern is: there
// is nothing to backtrack.

package glob

import (
	"errors"
	"fmt"
	"strings"
)

// maxElements is what fits the bits of a state besides the final one. The text
// in front of the first wildcard is compared as it is and does not count.
const maxElements = 63

// Pattern is one pattern. Bit i of a state means that the elements before i may
// have been used up; loops has the bits of states in front of which a * stands.
type Pattern struct {
	Text   string
	Prefix string
	steps  *[256]uint64 // by byte: the elements that take it; nil: the prefix decides
	loops  uint64
	end    uint64
}

// New reads a pattern; the error is the end of a sentence.
func New(pattern string) (Pattern, error) {
	g := Pattern{Text: pattern}
	var prefix strings.Builder
	at := 0
	for ; at < len(pattern) && pattern[at] != '*' && pattern[at] != '?'; at++ {
		if pattern[at] == '[' {
			return g, errClass
		}
		if pattern[at] == '\\' {
			if at++; at == len(pattern) {
				return g, errEscape
			}
		}
		prefix.WriteByte(pattern[at])
	}
	g.Prefix = prefix.String()
	switch {
	case pattern == "":
		return g, errors.New("is empty")
	case at < len(pattern):
		return g, g.compile(pattern[at:])
	}
	g.end = 1
	g.steps = new([256]uint64)
	return g, nil
}

var (
	errClass  = errors.New(`holds [, which has no meaning of its own here: write \[ for the byte`)
	errEscape = errors.New(`ends in a backslash: write \\ for the byte`)
)

// compile reads what follows the prefix.
func (g *Pattern) compile(rest string) error {
	if rest == "*" {
		return nil // the prefix decides
	}
	g.steps = new([256]uint64)
	n := 0
	for i := 0; i < len(rest); i++ {
		c := rest[i]
		if c == '*' {
			g.loops |= 1 << n
			continue
		}
		if n == maxElements {
			return fmt.Errorf("has more than %d bytes behind its first wildcard", maxElements)
		}
		switch c {
		case '[':
			return errClass
		case '?':
			for b := range g.steps {
				g.steps[b] |= 1 << n
			}
		case '\\':
			if i++; i == len(rest) {
				return errEscape
			}
			g.steps[rest[i]] |= 1 << n
		default:
			g.steps[c] |= 1 << n
		}
		n++
	}
	g.end = 1 << n
	return nil
}

// Matches reports whether the whole name is covered.
func (g *Pattern) Matches(name string) bool {
	if !strings.HasPrefix(name, g.Prefix) {
		return false
	}
	if g.steps == nil {
		return true
	}
	state := uint64(1)
	for i := len(g.Prefix); i < len(name) && state != 0; i++ {
		state = (state&g.steps[name[i]])<<1 | state&g.loops
	}
	return state&g.end != 0
}
