package resp

// inline.go splits a line typed by a person or a script into words. The quoting is Redis'
// own: "…" has the escapes \n \r \t \b \a \xHH and takes any other escaped byte as it is,
// '…' has only \', and a closing quote must be followed by a blank or the end.

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
		case line[at+1] == 'x' && at+3 < len(line) && isHex(line[at+2]) && isHex(line[at+3]):
			word = append(word, unhex(line[at+2])<<4|unhex(line[at+3]))
			at += 3
		default:
			at++
			word = append(word, unescape(line[at]))
		}
	}
	return nil, 0, false
}

func unescape(c byte) byte {
	switch c {
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case 'b':
		return '\b'
	case 'a':
		return '\a'
	}
	return c
}

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

func unhex(c byte) byte {
	switch {
	case c <= '9':
		return c - '0'
	case c <= 'F':
		return c - 'A' + 10
	}
	return c - 'a' + 10
}
