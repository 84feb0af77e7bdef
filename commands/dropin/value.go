// The value of an expression, as far as it is known before the script runs. Its type and its
// truth are always known.

package dropin

import (
	"slices"
	"strconv"
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
	valueExtended    // the remaining ms of KEYS[key] plus ARGV[arg]
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
)

func numberValue(n int64) luaValue { return luaValue{kind: valueNumber, n: n} }

func boolValue(b bool) luaValue {
	if b {
		return luaValue{kind: valueTrue}
	}
	return luaValue{kind: valueFalse}
}

func (v luaValue) is(kinds ...valueKind) bool { return slices.Contains(kinds, v.kind) }

// truth reports whether a condition with this value holds.
func (v luaValue) truth() bool { return !v.is(valueNil, valueFalse) }

// size is the number of values in this value, including itself.
func (v luaValue) size() int {
	n := 1
	for _, item := range v.items {
		n += item.size()
	}
	return n
}

// dependsOnKey reports whether the value depends on the earlier value of a key.
func (v luaValue) dependsOnKey() bool {
	return v.is(valueHeld, valueRemainingMS, valueRemainingS, valueExtended) || slices.ContainsFunc(v.items, luaValue.dependsOnKey)
}

// write appends a text that is different for every value.
func (v luaValue) write(b []byte) []byte {
	b = append(b, byte(v.kind), ' ')
	b = strconv.AppendInt(b, v.n, 10)
	b = append(b, ' ')
	b = strconv.AppendInt(b, int64(v.key), 10)
	b = append(b, ' ')
	b = strconv.AppendInt(b, int64(v.arg), 10)
	b = append(b, ' ')
	b = strconv.AppendQuote(b, v.text)
	for _, item := range v.items {
		b = append(item.write(append(b, '{')), '}')
	}
	return b
}
