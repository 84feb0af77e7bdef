// The value of an expression, as far as it is known before the script runs: its type and its
// truth are always known. The answers of scripts are such values, too.

package dropin

import (
	"fmt"
	"slices"
)

type valueKind uint8

const (
	valueNil valueKind = iota
	valueFalse
	valueTrue
	valueNumber      // n, a whole number
	valueText        // text, written in the script
	valueArg         // ARGV[arg] unchanged
	valueArgNumber   // tonumber(ARGV[arg])
	valueKey         // KEYS[key] unchanged
	valueHeld        // the value of KEYS[key] before the script changed it
	valueRemainingMS // the remaining ms of KEYS[key], 0 or more
	valueRemainingS  // the same in seconds
	valueExtended    // the remaining time of KEYS[key] plus ARGV[arg]
	valueStatus      // {ok = text}
	valueFailure     // {err = text}
	valueJoined      // the texts of items, joined
	valueTable       // {items}
	valueUnknown     // a reply that differs between masters
)

// luaValue has indexes from 0.
type luaValue struct {
	kind  valueKind
	n     int64
	text  string
	key   int
	arg   int
	unit  Unit // of valueExtended and of remaining times
	items []luaValue
}

const (
	// maxItems bounds the values of a table, including those of nested tables.
	maxItems = 64
	// maxParts bounds the parts of a joined text, and maxLiteral the bytes in it that the
	// script contains.
	maxParts   = 16
	maxLiteral = 1024
	// maxNumber is the largest number up to which Lua counts exactly.
	maxNumber = 1 << 53
	// maxPrinted is the largest number that Lua prints with all of its digits.
	maxPrinted = 99_999_999_999_999
)

func numberValue(n int64) luaValue { return luaValue{kind: valueNumber, n: n} }

func boolValue(b bool) luaValue {
	if b {
		return luaValue{kind: valueTrue}
	}
	return luaValue{kind: valueFalse}
}

func (v luaValue) is(kinds ...valueKind) bool { return slices.Contains(kinds, v.kind) }

// contains reports whether the function holds for the value or for one of its items.
func (v luaValue) contains(such func(luaValue) bool) bool {
	return such(v) || slices.ContainsFunc(v.items, func(item luaValue) bool { return item.contains(such) })
}

// showsKey reports whether the value depends on the earlier value of a key.
func (v luaValue) showsKey() bool {
	return v.contains(func(v luaValue) bool { return v.is(valueHeld, valueRemainingMS, valueRemainingS, valueExtended) })
}

// size is the number of values in this value, including itself.
func (v luaValue) size() int {
	n := 1
	for _, item := range v.items {
		n += item.size()
	}
	return n
}

// same reports whether two values are equal.
func (v luaValue) same(w luaValue) bool {
	return v.kind == w.kind && v.n == w.n && v.text == w.text && v.key == w.key && v.arg == w.arg && slices.EqualFunc(v.items, w.items, luaValue.same)
}

// write appends a text that is different for every value.
func (v luaValue) write(b []byte) []byte {
	b = fmt.Appendf(b, "%d %d %d %d %q{", v.kind, v.n, v.key, v.arg, v.text)
	for _, item := range v.items {
		b = item.write(b)
	}
	return append(b, '}')
}

// onlyOne is the one value that all of these are, nil if there are several or if it depends on what
// a key holds.
func onlyOne(values []luaValue) *luaValue {
	for _, v := range values {
		if v.showsKey() || !v.same(values[0]) || v.contains(func(v luaValue) bool { return v.kind == valueKey }) {
			return nil
		}
	}
	if len(values) == 0 {
		return nil
	}
	return &values[0]
}
