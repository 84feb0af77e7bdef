// Replies and their shapes. A Reply is one answer. A Shape is what the answers of one outcome
// have in common: some contain a remaining time, a name or the token that the key holds.

package dropin

import (
	"strconv"
	"strings"
)

// ReplyKind is the type of a ScriptReply.
type ReplyKind uint8

const (
	KindNil ReplyKind = iota
	KindStatus
	KindError // Text without the leading '-'
	KindInt
	KindBulk
	KindArray
)

// ScriptReply is one answer of a master to a script.
type ScriptReply struct {
	Kind  ReplyKind
	Int   int64
	Text  string
	Items []ScriptReply
}

func status(text string) ScriptReply { return ScriptReply{Kind: KindStatus, Text: text} }
func failed(text string) ScriptReply { return ScriptReply{Kind: KindError, Text: text} }
func number(n int64) ScriptReply     { return ScriptReply{Kind: KindInt, Int: n} }
func bulk(text string) ScriptReply   { return ScriptReply{Kind: KindBulk, Text: text} }

// source is the origin of a part of an answer.
type source uint8

const (
	fromScript   source = iota // always the same
	fromArgument               // the n-th ARGV
	fromKey                    // the n-th KEYS
	fromMaster                 // the value of the key
	remainingMS                // PTTL of the key
	remainingS                 // TTL of the key
)

// part is a piece of a text, or the origin of a number.
type replyPart struct {
	from source
	n    int // from 1: which argument or key
	text string
}

// Shape describes the answers of one outcome.
type Shape struct {
	kind  ReplyKind
	n     int64
	parts []replyPart
	items []Shape
}

// matches reports whether the answer to the call has this shape. not is the token of the
// call if the value of the key must be another token.
func (s Shape) matches(r ScriptReply, call ScriptCall, not string) bool {
	if s.kind != r.Kind && !(isText(s.kind) && isText(r.Kind)) {
		return false
	}
	switch s.kind {
	case KindNil:
		return true
	case KindInt:
		return s.matchesInt(r.Int)
	case KindArray:
		if len(s.items) != len(r.Items) {
			return false
		}
		for i, item := range s.items {
			if !item.matches(r.Items[i], call, not) {
				return false
			}
		}
		return true
	case KindError:
		return s.matchesError(r.Text, call)
	}
	if s.is(fromMaster) {
		return not == "" || r.Text != not
	}
	return r.Text == s.text(call)
}

// matchesInt accepts any remaining time of a lease.
func (s Shape) matchesInt(n int64) bool {
	if s.is(remainingMS) || s.is(remainingS) {
		return n >= 0
	}
	return n == s.n
}

// matchesError also accepts a code before the error of a script and its SHA1 after it:
// some versions of the server add them.
func (s Shape) matchesError(text string, call ScriptCall) bool {
	want := s.text(call)
	return text == want || strings.TrimPrefix(text, "ERR ") == want || strings.HasPrefix(text, want+" script:")
}

func (s Shape) is(from source) bool { return len(s.parts) == 1 && s.parts[0].from == from }

// text joins the parts. A part that comes from the master is empty.
func (s Shape) text(call ScriptCall) string {
	if len(s.parts) == 1 && s.parts[0].from == fromScript {
		return s.parts[0].text
	}
	var b strings.Builder
	for _, p := range s.parts {
		switch p.from {
		case fromScript:
			b.WriteString(p.text)
		case fromArgument:
			b.WriteString(nth(call.Args, p.n))
		case fromKey:
			b.WriteString(nth(call.Keys, p.n))
		}
	}
	return b.String()
}

// fill returns the answer of this shape. ok is false if a part is not known.
func (s Shape) fill(call ScriptCall, holds string, remaining int64) (r ScriptReply, ok bool) {
	r = ScriptReply{Kind: s.kind, Int: s.n}
	switch {
	case s.is(remainingMS):
		r.Int = remaining
	case s.is(remainingS):
		r.Int = inSeconds(remaining)
	case s.is(fromMaster):
		r.Text = holds
	case s.kind == KindArray:
		for _, item := range s.items {
			filled, ok := item.fill(call, holds, remaining)
			if !ok {
				return ScriptReply{}, false
			}
			r.Items = append(r.Items, filled)
		}
	default:
		r.Text = s.text(call)
	}
	return r, true
}

// inSeconds rounds as TTL does; -1 and -2 stay unchanged.
func inSeconds(ms int64) int64 {
	if ms < 0 {
		return ms
	}
	return (ms + 500) / 1000
}

// same reports whether two shapes are equal.
func (s Shape) same(t Shape) bool {
	if s.kind != t.kind && !(isText(s.kind) && isText(t.kind)) || s.n != t.n || len(s.parts) != len(t.parts) || len(s.items) != len(t.items) {
		return false
	}
	for i := range s.parts {
		if s.parts[i] != t.parts[i] {
			return false
		}
	}
	for i := range s.items {
		if !s.items[i].same(t.items[i]) {
			return false
		}
	}
	return true
}

// isText reports whether the kind is a text: clients and libraries treat a status and a
// bulk string alike.
func isText(k ReplyKind) bool { return k == KindStatus || k == KindBulk }

func nth(list []string, n int) string {
	if n < 1 || n > len(list) {
		return ""
	}
	return list[n-1]
}

// String is the readable form of a shape: OK, 1, nil, -ERROR, pttl, value, [value pttl].
func (s Shape) String() string {
	switch {
	case s.kind == KindNil:
		return "nil"
	case s.is(remainingMS):
		return "pttl"
	case s.is(remainingS):
		return "ttl"
	case s.kind == KindInt:
		return strconv.FormatInt(s.n, 10)
	case s.kind == KindArray:
		words := make([]string, len(s.items))
		for i, item := range s.items {
			words[i] = item.String()
		}
		return "[" + strings.Join(words, " ") + "]"
	}
	var b strings.Builder
	if s.kind == KindError {
		b.WriteByte('-')
	}
	for _, p := range s.parts {
		switch p.from {
		case fromArgument:
			b.WriteString("{arg" + strconv.Itoa(p.n) + "}")
		case fromKey:
			b.WriteString("{key" + strconv.Itoa(p.n) + "}")
		case fromMaster:
			b.WriteString("value")
		default:
			b.WriteString(p.text)
		}
	}
	return b.String()
}

// parseShape reads what String writes, for the table of known scripts and for
// --script-class.
func parseShape(word string) Shape {
	switch {
	case word == "nil":
		return Shape{}
	case word == "pttl":
		return Shape{kind: KindInt, parts: []replyPart{{from: remainingMS}}}
	case word == "ttl":
		return Shape{kind: KindInt, parts: []replyPart{{from: remainingS}}}
	case word == "value":
		return Shape{kind: KindBulk, parts: []replyPart{{from: fromMaster}}}
	case strings.HasPrefix(word, "[") && strings.HasSuffix(word, "]"):
		list := Shape{kind: KindArray}
		for _, item := range strings.Fields(word[1 : len(word)-1]) {
			list.items = append(list.items, parseShape(item))
		}
		return list
	}
	if n, err := strconv.ParseInt(word, 10, 64); err == nil {
		return Shape{kind: KindInt, n: n}
	}
	if rest, isError := strings.CutPrefix(word, "-"); isError {
		return Shape{kind: KindError, parts: []replyPart{{text: rest}}}
	}
	s := Shape{kind: KindBulk}
	for prefix, from := range map[string]source{"{arg": fromArgument, "{key": fromKey} {
		rest, named := strings.CutPrefix(word, prefix)
		digits, tail, closed := strings.Cut(rest, "}")
		if n, err := strconv.Atoi(digits); named && closed && err == nil {
			s.parts = append(s.parts, replyPart{from: from, n: n})
			word = tail
			break
		}
	}
	if word != "" || len(s.parts) == 0 {
		s.parts = append(s.parts, replyPart{text: word})
	}
	return s
}
