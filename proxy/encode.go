package proxy

// encode.go encodes replies. RESP2 and RESP3 differ here and nowhere else.

import (
	"strconv"
	"unicode"
	"unicode/utf8"

	"redlockd/commands"
)

// appendReply appends r in protocol version proto (2 or 3).
func appendReply(dst []byte, r commands.Reply, proto int) []byte {
	switch r.Kind {
	case commands.KindSimple:
		return appendLine(append(dst, '+'), r.Text)
	case commands.KindError:
		return appendErrorLine(append(dst, '-'), r.Text)
	case commands.KindInt:
		return appendHeader(dst, ':', r.Int)
	case commands.KindBulk:
		return appendBulk(dst, r.Text)
	case commands.KindArray:
		return appendItems(appendHeader(dst, '*', int64(len(r.Items))), r.Items, proto)
	case commands.KindMap:
		return appendMap(dst, r.Items, proto)
	case commands.KindPush:
		kind := byte('*')
		if proto >= 3 {
			kind = '>'
		}
		return appendItems(appendHeader(dst, kind, int64(len(r.Items))), r.Items, proto)
	case commands.KindEach:
		return appendItems(dst, r.Items, proto)
	}
	switch {
	case proto >= 3:
		return append(dst, "_\r\n"...)
	case r.Kind == commands.KindNilArray:
		return append(dst, "*-1\r\n"...)
	}
	return append(dst, "$-1\r\n"...)
}

// appendMap writes an odd number of items with a nil value at the end: the
// stream stays readable whatever a handler does.
func appendMap(dst []byte, items []commands.Reply, proto int) []byte {
	odd := len(items) % 2
	if proto >= 3 {
		dst = appendHeader(dst, '%', int64(len(items)+odd)/2)
	} else {
		dst = appendHeader(dst, '*', int64(len(items)+odd))
	}
	dst = appendItems(dst, items, proto)
	if odd == 1 {
		dst = appendReply(dst, commands.Nil, proto)
	}
	return dst
}

func appendItems(dst []byte, items []commands.Reply, proto int) []byte {
	for i := range items {
		dst = appendReply(dst, items[i], proto)
	}
	return dst
}

func appendHeader(dst []byte, kind byte, n int64) []byte {
	dst = append(dst, kind)
	dst = strconv.AppendInt(dst, n, 10)
	return append(dst, '\r', '\n')
}

func appendBulk(dst []byte, text string) []byte {
	dst = appendHeader(dst, '$', int64(len(text)))
	dst = append(dst, text...)
	return append(dst, '\r', '\n')
}

// appendLine writes text on one line: a CR or LF from a client's own words must
// not become a second reply.
func appendLine(dst []byte, text string) []byte {
	start := len(dst)
	dst = append(dst, text...)
	for i, c := range dst[start:] {
		if c == '\r' || c == '\n' {
			dst[start+i] = ' '
		}
	}
	return append(dst, '\r', '\n')
}

// appendErrorLine also masks characters that a terminal would execute or could not show:
// errors quote clients and are read by people.
func appendErrorLine(dst []byte, text string) []byte {
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

// replySize estimates from above how many bytes r takes, for the bound on
// unwritten replies.
func replySize(r *commands.Reply) int {
	size := len(r.Text) + 24 // a type byte, twenty digits, line ends
	for i := range r.Items {
		size += replySize(&r.Items[i])
	}
	return size
}
