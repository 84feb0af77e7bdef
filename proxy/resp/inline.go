package resp

// inline.go splits a line typed by a person or a script into words. The quoting is Redis'
// own: "…" has the escapes \n \r \t \b \a \xHH and takes any other escaped byte as it is,
// '…' has only \', and a closing quote must be followed by a blank or the end.

import (
	"strconv"
	"strings"
)

const whitespace = " \t\n\v\f\r"

// SplitLine splits a line without its line feed into words, at most maxWords+1 of
// them; ok is false when the quotes do not balance.
func SplitLine(line []byte, maxWords int) (args []string, ok bool) {
	for at := 0; ; {
		for at < len(line) && isSpace(line[at]) {
			at++
		}
		if at == len(line) || len(args) > maxWords {
			return args, true
		}
		word, next, ok := nextWord(line, at)
		if !ok {
			return nil, false
		}
		args = append(args, string(word))
		at = next
	}
}

// nextWord reads from line[at], which is not blank. Quotes may open in the
// middle of a word and close it at its end only.
func nextWord(line []byte, at int) (word []byte, next int, ok bool) {
	for at < len(line) {
		switch c := line[at]; c {
		// The vertical tab and the form feed separate nothing inside a line,
		// although they are skipped between words.
		case ' ', '\t', '\n', '\r':
			return word, at, true
		case '"', '\'':
			word, at, ok = quoted(word, line, at)
			if !ok || at < len(line) && !isSpace(line[at]) {
				return nil, 0, false
			}
			return word, at, true
		default:
			word = append(word, c)
			at++
		}
	}
	return word, at, true
}

// quoted appends the text between the quote at line[at] and its closing quote;
// next is the byte after that.
func quoted(word, line []byte, at int) (_ []byte, next int, ok bool) {
	quote := line[at]
	for at++; at < len(line); at++ {
		c := line[at]
		switch {
		case c == quote:
			return word, at + 1, true
		case c != '\\' || at+1 == len(line):
			word = append(word, c)
		case quote == '\'':
			if line[at+1] == '\'' {
				at++
			}
			word = append(word, line[at])
		default:
			escaped, size := unescape(line[at+1:])
			word = append(word, escaped)
			at += size
		}
	}
	return nil, 0, false
}

// unescape returns the byte that follows a backslash, and how many bytes of text it takes.
func unescape(text []byte) (c byte, size int) {
	if text[0] == 'x' && len(text) > 2 {
		if n, err := strconv.ParseUint(string(text[1:3]), 16, 8); err == nil {
			return byte(n), 3
		}
	}
	if i := strings.IndexByte("nrtba", text[0]); i >= 0 {
		return "\n\r\t\b\a"[i], 1
	}
	return text[0], 1
}

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }
