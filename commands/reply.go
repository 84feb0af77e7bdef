// Reply is one answer to one command.

package commands

import "strings"

// Kind is the shape of a Reply. RESP2 and RESP3 write the same Reply
// differently; only the encoder handles that difference.
type Kind uint8

const (
	KindNil      Kind = iota // RESP2 $-1, RESP3 _
	KindSimple               // +text
	KindError                // -CODE text
	KindInt                  // :n
	KindBulk                 // $len bytes
	KindArray                // *n
	KindMap                  // RESP3 %n, RESP2 a flat array; Items alternates key, value
	KindPush                 // RESP3 >n, RESP2 an array
	KindEach                 // Items one after another, as replies of their own
	KindNilArray             // RESP2 *-1, RESP3 _
)

// Reply is one answer to one command: a plain value, safe to copy. The zero
// Reply is nil, which on this protocol means "no".
type Reply struct {
	Kind  Kind
	Int   int64
	Text  string // KindSimple, KindBulk; for KindError the whole line, code first
	Items []Reply
}

// OK is the answer of commands that have nothing else to report.
var OK = Simple("OK")

// Nil is "no": another token holds the lock, or the wait ran out.
var Nil = Reply{}

// NilArray is "no" where clients on RESP2 expect a list: EXEC and BLPOP.
var NilArray = Reply{Kind: KindNilArray}

// Silence is an answer of which nothing is written.
var Silence = Each()

// Each is several replies to one command, as SUBSCRIBE gives them.
func Each(items ...Reply) Reply { return Reply{Kind: KindEach, Items: items} }

// Simple is a status line; CR and LF in it become spaces when it is encoded.
func Simple(text string) Reply { return Reply{Kind: KindSimple, Text: text} }

// Bulk is a binary-safe string.
func Bulk(text string) Reply { return Reply{Kind: KindBulk, Text: text} }

func Int(n int64) Reply { return Reply{Kind: KindInt, Int: n} }

// Bool is 1 or 0.
func Bool(yes bool) Reply {
	if yes {
		return Int(1)
	}
	return Int(0)
}

// Array is an ordered list.
func Array(items ...Reply) Reply { return Reply{Kind: KindArray, Items: items} }

// statuses is a list of status lines.
func statuses(texts []string) Reply {
	items := make([]Reply, len(texts))
	for i, text := range texts {
		items[i] = Simple(text)
	}
	return Array(items...)
}

// Map alternates keys and values; an odd number of items is a programming error.
func Map(items ...Reply) Reply { return Reply{Kind: KindMap, Items: items} }

// Error is a failure; code is the machine-readable first word (ERR, NOQUORUM …).
func Error(code, text string) Reply {
	return Reply{Kind: KindError, Text: code + " " + text}
}

// Line keeps a text from ending its line: details may quote an error of a master.
func Line(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
}

// Field also keeps it from ending its field in a line of INFO.
func Field(s string) string { return strings.ReplaceAll(Line(s), ",", ";") }
