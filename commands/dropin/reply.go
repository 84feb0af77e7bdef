// Calls and answers of scripts. The class of a script has its answers as values: some contain a
// remaining time, a name or the token that the key holds.

package dropin

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// ScriptCall is one EVAL or EVALSHA: KEYS and ARGV.
type ScriptCall struct{ Keys, Args []string }

// word is the i-th argument, from 0; behind the arguments come the keys, which some scripts take
// for values. It is "" beyond.
func (c ScriptCall) word(i int) string {
	switch n := len(c.Args); {
	case i < 0 || i >= n+len(c.Keys):
		return ""
	case i < n:
		return c.Args[i]
	default:
		return c.Keys[i-n]
	}
}

type ReplyKind uint8

const (
	KindNil ReplyKind = iota
	KindStatus
	KindError // Text without the leading '-'
	KindInt
	KindBulk
	KindArray
)

// ScriptReply is the answer to a script.
type ScriptReply struct {
	Kind  ReplyKind
	Int   int64
	Text  string
	Items []ScriptReply
}

func (v luaValue) textOf(call ScriptCall) string {
	switch v.kind {
	case valueArg:
		return call.word(v.arg)
	case valueKey:
		return call.Keys[v.key]
	case valueJoined:
		var b strings.Builder
		for _, item := range v.items {
			b.WriteString(item.textOf(call))
		}
		return b.String()
	}
	return v.text
}

// reply is the answer that a client gets. views are what the keys hold.
func (v luaValue) reply(call ScriptCall, views []KeyView) ScriptReply {
	at := KeyView{Left: -2}
	if len(views) > 0 {
		at = views[min(v.key, len(views)-1)]
	}
	switch v.kind {
	case valueNil, valueFalse:
		return ScriptReply{}
	case valueTrue:
		return ScriptReply{Kind: KindInt, Int: 1}
	case valueNumber:
		return ScriptReply{Kind: KindInt, Int: v.n}
	case valueRemainingMS:
		return ScriptReply{Kind: KindInt, Int: at.Left}
	case valueRemainingS:
		left := at.Left
		if left >= 0 {
			left = (left + 500) / 1000 // as TTL rounds
		}
		return ScriptReply{Kind: KindInt, Int: left}
	case valueHeld:
		return ScriptReply{Kind: KindBulk, Text: at.Value}
	case valueStatus:
		return ScriptReply{Kind: KindStatus, Text: v.text}
	case valueFailure:
		return ScriptReply{Kind: KindError, Text: v.text}
	case valueTable:
		list := ScriptReply{Kind: KindArray}
		for _, item := range v.items {
			list.Items = append(list.Items, item.reply(call, views))
		}
		return list
	}
	return ScriptReply{Kind: KindBulk, Text: v.textOf(call)}
}

// overlaps reports whether one answer can be both values. A status is the same as its text: clients and
// libraries treat them alike.
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
		return !constant(v) || !constant(w) || v.text == w.text
	}
	return remains(v) && atLeastZero(w) || remains(w) && atLeastZero(v)
}

var (
	answerWords = map[string]luaValue{
		"nil": {}, "OK": {kind: valueStatus, text: "OK"}, "pttl": {kind: valueRemainingMS}, "ttl": {kind: valueRemainingS}, "value": {kind: valueHeld},
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
			v := parseAnswer(item)
			if v.kind == valueNil {
				v.kind = valueFalse // a nil that does not end the list
			}
			list.items = append(list.items, v)
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
