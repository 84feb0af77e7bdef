package resp

// encode.go appends requests and parts of replies to a buffer. Nothing in it allocates
// while the buffer has space.

import (
	"strconv"
	"unicode"
	"unicode/utf8"
)

func AppendCommand(dst []byte, words ...string) []byte {
	dst = AppendHeader(dst, '*', int64(len(words)))
	for _, word := range words {
		dst = AppendBulk(dst, word)
	}
	return dst
}

// AppendHeader appends a type byte with a number: an integer, or the length of what follows.
func AppendHeader(dst []byte, kind byte, n int64) []byte {
	dst = append(dst, kind)
	dst = strconv.AppendInt(dst, n, 10)
	return append(dst, '\r', '\n')
}

// AppendBulk appends a string of any bytes.
func AppendBulk(dst []byte, text string) []byte {
	dst = AppendHeader(dst, '$', int64(len(text)))
	dst = append(dst, text...)
	return append(dst, '\r', '\n')
}

// AppendSimple appends a status. It stays on one line: a CR or LF from a client's own
// words must not become a second reply.
func AppendSimple(dst []byte, text string) []byte {
	dst = append(dst, '+')
	start := len(dst)
	dst = append(dst, text...)
	for i, c := range dst[start:] {
		if c == '\r' || c == '\n' {
			dst[start+i] = ' '
		}
	}
	return append(dst, '\r', '\n')
}

// AppendError appends an error. It also masks characters that a terminal would execute or
// could not show: errors quote clients and are read by people.
func AppendError(dst []byte, text string) []byte {
	dst = append(dst, '-')
	for i := 0; i < len(text); {
		c, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case c == '\r' || c == '\n':
			dst = append(dst, ' ')
		case c == utf8.RuneError && size == 1 || !unicode.IsPrint(c):
			dst = append(dst, '?')
		default:
			dst = append(dst, text[i:i+size]...)
		}
		i += size
	}
	return append(dst, '\r', '\n')
}
