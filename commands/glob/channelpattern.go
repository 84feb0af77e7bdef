// Channel patterns of PSUBSCRIBE, as in Redis: * is any run of bytes, ? any one
// byte, [abc] [a-z] [^a] one byte of a class, and a backslash takes away the meaning
// of the byte behind it. A pattern becomes a glob (glob.go), so that it costs every
// event the same few steps, however it is written.

package glob

import (
	"fmt"
	"strings"
)

// NewChannel accepts all that Redis does, except for its length; the error is
// the end of a sentence.
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
		bit := uint64(1) << n
		switch c := text[i]; {
		case c == '?':
			for b := range g.steps {
				g.steps[b] |= bit
			}
			i++
		case c == '[':
			i = g.class(text, i+1, bit)
		case c == '\\' && i+1 < len(text):
			g.steps[text[i+1]] |= bit
			i += 2
		default:
			g.steps[c] |= bit
			i++
		}
		n++
	}
	g.end = 1 << n
	return g, nil
}

// class reads what stands behind a [ and returns where it goes on. A class
// without an end ends with the pattern.
func (g *Pattern) class(text string, i int, bit uint64) int {
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
			g.steps[b] |= bit
		}
	}
	return min(i+1, len(text))
}
