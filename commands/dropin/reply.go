// Calls and answers of scripts. A ScriptReply is one answer of a master. The class of a script has
// its answers as values: some contain a remaining time, a name or the token that the key
// holds.

package dropin

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// ScriptCall is one EVAL or EVALSHA: KEYS and ARGV.
type ScriptCall struct{ Keys, Args []string }

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

// matches reports whether a master's answer to the call is this value. not is the token of
// the call if the value of the key must be another token.
func (v luaValue) matches(r ScriptReply, call ScriptCall, not string) bool {
	switch v.kind {
	case valueNil:
		return r.Kind == KindNil
	case valueNumber:
		return r.Kind == KindInt && r.Int == v.n
	case valueRemainingMS, valueRemainingS:
		return r.Kind == KindInt && r.Int >= 0
	case valueTable:
		return r.Kind == KindArray && slices.EqualFunc(v.items, r.Items, func(item luaValue, r ScriptReply) bool { return item.matches(r, call, not) })
	case valueFailure:
		return r.Kind == KindError && matchesError(r.Text, v.text)
	case valueHeld:
		return r.isText() && (not == "" || r.Text != not)
	}
	return r.isText() && r.Text == v.textOf(call)
}

// isText reports whether the answer is a text: clients treat a status and a bulk string
// alike.
func (r ScriptReply) isText() bool { return r.Kind == KindStatus || r.Kind == KindBulk }

// matchesError also accepts a code before the error of a script and its SHA1 after it:
// some versions of the server add them.
func matchesError(text, want string) bool {
	return text == want || strings.TrimPrefix(text, "ERR ") == want || strings.HasPrefix(text, want+" script:")
}

func (v luaValue) textOf(call ScriptCall) string {
	switch v.kind {
	case valueArg:
		return nth(call.Args, v.arg+1)
	case valueKey:
		return nth(call.Keys, v.key+1)
	case valueJoined:
		var b strings.Builder
		for _, item := range v.items {
			b.WriteString(item.textOf(call))
		}
		return b.String()
	}
	return v.text
}

// reply is the answer that a client gets. holds is the value of the key, and remaining its
// remaining ms.
func (v luaValue) reply(call ScriptCall, holds string, remaining int64) ScriptReply {
	switch v.kind {
	case valueNil:
		return ScriptReply{}
	case valueNumber:
		return ScriptReply{Kind: KindInt, Int: v.n}
	case valueRemainingMS:
		return ScriptReply{Kind: KindInt, Int: remaining}
	case valueRemainingS:
		if remaining >= 0 {
			remaining = (remaining + 500) / 1000 // as TTL rounds
		}
		return ScriptReply{Kind: KindInt, Int: remaining}
	case valueHeld:
		return ScriptReply{Kind: KindBulk, Text: holds}
	case valueStatus:
		return ScriptReply{Kind: KindStatus, Text: v.text}
	case valueFailure:
		return ScriptReply{Kind: KindError, Text: v.text}
	case valueTable:
		list := ScriptReply{Kind: KindArray}
		for _, item := range v.items {
			list.Items = append(list.Items, item.reply(call, holds, remaining))
		}
		return list
	}
	return ScriptReply{Kind: KindBulk, Text: v.textOf(call)}
}

// withRemaining returns the answer with n for the remaining time.
func (v luaValue) withRemaining(n int64) luaValue {
	if v.is(valueRemainingMS, valueRemainingS) {
		return numberValue(n)
	}
	v.items = slices.Clone(v.items)
	for i, item := range v.items {
		v.items[i] = item.withRemaining(n)
	}
	return v
}

// overlaps reports whether one answer of a master can match both values.
func (v luaValue) overlaps(w luaValue) bool {
	remains := func(v luaValue) bool { return v.is(valueRemainingMS, valueRemainingS) }
	atLeastZero := func(v luaValue) bool { return remains(v) || v.kind == valueNumber && v.n >= 0 }
	constant := func(v luaValue) bool { return v.is(valueText, valueStatus) }
	text := func(v luaValue) bool { return constant(v) || v.is(valueArg, valueKey, valueJoined, valueHeld) }
	switch {
	case v.same(w):
		return true
	case v.kind == valueTable && w.kind == valueTable:
		return slices.EqualFunc(v.items, w.items, luaValue.overlaps)
	case text(v) && text(w):
		return !constant(v) || !constant(w)
	}
	return remains(v) && atLeastZero(w) || remains(w) && atLeastZero(v)
}

func nth(list []string, n int) string {
	if n < 1 || n > len(list) {
		return ""
	}
	return list[n-1]
}

var (
	answerWords = map[string]luaValue{
		"nil": {}, "pttl": {kind: valueRemainingMS}, "ttl": {kind: valueRemainingS}, "value": {kind: valueHeld},
	}
	placeholder = regexp.MustCompile(`^\{(arg|key)([0-9]+)\}(.*)$`)
)

// parseAnswer reads an answer of the table of known scripts or of --script-class: OK, 1, nil,
// -ERROR, pttl, ttl, value, {arg1}, {key1} or a list of them, [value pttl].
func parseAnswer(word string) luaValue {
	if v, ok := answerWords[word]; ok {
		return v
	}
	if strings.HasPrefix(word, "[") && strings.HasSuffix(word, "]") {
		list := luaValue{kind: valueTable}
		for _, item := range strings.Fields(word[1 : len(word)-1]) {
			list.items = append(list.items, parseAnswer(item))
		}
		return list
	}
	if n, err := strconv.ParseInt(word, 10, 64); err == nil {
		return numberValue(n)
	}
	if rest, isError := strings.CutPrefix(word, "-"); isError {
		return luaValue{kind: valueFailure, text: rest}
	}
	parts := placeholder.FindStringSubmatch(word)
	if parts == nil {
		return luaValue{kind: valueText, text: word}
	}
	n, _ := strconv.Atoi(parts[2])
	from := luaValue{kind: valueArg, arg: n - 1}
	if parts[1] == "key" {
		from = luaValue{kind: valueKey, key: n - 1}
	}
	if parts[3] == "" {
		return from
	}
	return luaValue{kind: valueJoined, items: []luaValue{from, {kind: valueText, text: parts[3]}}}
}
