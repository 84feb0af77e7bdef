// Package glob matches names against patterns: key patterns of users and of DLOCKS, and
// channel patterns of PSUBSCRIBE.
//
// Patterns: * is any run of bytes, ? any one byte, [abc] [a-z] [^a] one byte of a class,
// and a backslash takes away the meaning of the byte after it. Matching costs one step of
// a few machine words per byte of the name, whatever the pattern is: there is nothing to
// backtrack.
package glob

import (
	"errors"
	"fmt"
	"strings"
)

// maxElements fits the bits of a state besides the final one. The text
// in front of the first wildcard is compared as it is and does not count.
const maxElements = 63

// Pattern is one pattern. Bit i of a state means that the elements before i may
// have been used up; loops has the bits of states in front of which a * stands. The zero
// Pattern matches everything.
type Pattern struct {
	Text   string
	Prefix string
	steps  *[256]uint64 // by byte: the elements that take it; nil: the prefix decides
	loops  uint64
	end    uint64
}

// New reads a pattern of keys, which has no classes; the error is the end of a sentence.
func New(text string) (Pattern, error) {
	if text == "" {
		return Pattern{}, errors.New("is empty")
	}
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '[':
			return Pattern{}, errors.New(`holds [, which has no meaning of its own here: write \[ for the byte`)
		case '\\':
			if i++; i == len(text) {
				return Pattern{}, errors.New(`ends in a backslash: write \\ for the byte`)
			}
		}
	}
	g, err := NewChannel(text)
	if err != nil {
		err = fmt.Errorf("has more than %d bytes behind its first wildcard", maxElements)
	}
	return g, err
}

// NewChannel reads a pattern of PSUBSCRIBE. It accepts all that Redis does, except for
// its length; the error is the end of a sentence.
func NewChannel(text string) (Pattern, error) {
	g := Pattern{Text: text}
	var prefix strings.Builder
	i, n := 0, 0
	for ; i < len(text) && text[i] != '*' && text[i] != '?' && text[i] != '['; i++ {
		if text[i] == '\\' && i+1 < len(text) {
			i++
		}
		prefix.WriteByte(text[i])
	}
	g.Prefix = prefix.String()
	if text[i:] == "*" {
		return g, nil // the prefix decides
	}
	g.steps = new([256]uint64)
	for i < len(text) {
		if text[i] == '*' {
			g.loops |= 1 << n
			i++
			continue
		}
		if n == maxElements {
			return g, fmt.Errorf("has more than %d elements behind its prefix", maxElements)
		}
		i = g.element(text, i, 1<<n)
		n++
	}
	g.end = 1 << n
	return g, nil
}

// element reads one element but a * and returns where it goes on.
func (p *Pattern) element(text string, i int, bit uint64) int {
	switch c := text[i]; {
	case c == '?':
		for b := range p.steps {
			p.steps[b] |= bit
		}
	case c == '[':
		return p.class(text, i+1, bit)
	case c == '\\' && i+1 < len(text):
		p.steps[text[i+1]] |= bit
		return i + 2
	default:
		p.steps[c] |= bit
	}
	return i + 1
}

// class reads what stands behind a [ and returns where it goes on. A class
// without an end ends with the pattern.
func (p *Pattern) class(text string, i int, bit uint64) int {
	var in [256]bool
	not := i < len(text) && text[i] == '^'
	if not {
		i++
	}
	for ; i < len(text) && text[i] != ']'; i++ {
		if text[i] == '\\' && i+1 < len(text) {
			i++
			in[text[i]] = true
			continue
		}
		from, to := text[i], text[i]
		if i+2 < len(text) && text[i+1] == '-' {
			to = text[i+2]
			i += 2
		}
		for b := int(min(from, to)); b <= int(max(from, to)); b++ {
			in[b] = true
		}
	}
	for b := range in {
		if in[b] != not {
			p.steps[b] |= bit
		}
	}
	return min(i+1, len(text))
}

func (p *Pattern) Matches(name string) bool {
	if !strings.HasPrefix(name, p.Prefix) {
		return false
	}
	if p.steps == nil {
		return true
	}
	state := uint64(1)
	for i := len(p.Prefix); i < len(name) && state != 0; i++ {
		state = (state&p.steps[name[i]])<<1 | state&p.loops
	}
	return state&p.end != 0
}
