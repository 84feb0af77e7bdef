package proxy

// encode.go encodes replies. RESP2 and RESP3 differ here and nowhere else.

import (
	"redlockd/commands"
	"redlockd/proxy/resp"
)

// appendReply appends r in protocol version proto (2 or 3).
func appendReply(dst []byte, r commands.Reply, proto int) []byte {
	switch r.Kind {
	case commands.KindSimple:
		return resp.AppendSimple(dst, r.Text)
	case commands.KindError:
		return resp.AppendError(dst, r.Text)
	case commands.KindInt:
		return resp.AppendHeader(dst, ':', r.Int)
	case commands.KindBulk:
		return resp.AppendBulk(dst, r.Text)
	case commands.KindArray:
		return appendItems(resp.AppendHeader(dst, '*', int64(len(r.Items))), r.Items, proto)
	case commands.KindMap:
		return appendMap(dst, r.Items, proto)
	case commands.KindPush:
		kind := byte('*')
		if proto >= 3 {
			kind = '>'
		}
		return appendItems(resp.AppendHeader(dst, kind, int64(len(r.Items))), r.Items, proto)
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
		dst = resp.AppendHeader(dst, '%', int64(len(items)+odd)/2)
	} else {
		dst = resp.AppendHeader(dst, '*', int64(len(items)+odd))
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

// replySize estimates from above how many bytes r takes, for the bound on
// unwritten replies.
func replySize(r *commands.Reply) int {
	size := len(r.Text) + 24 // a type byte, twenty digits, line ends
	for i := range r.Items {
		size += replySize(&r.Items[i])
	}
	return size
}
