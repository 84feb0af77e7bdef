// value is what an expression of a script yields, as far as it is known before the
// script runs. Its type and its truth are always known.
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
	valueArg         // ARGV[arg] as it is
	valueArgNumber   // tonumber(ARGV[arg])
	valueKey         // KEYS[key] as it is
	valueHeld        // what KEYS[key] held before the script changed it
	valueRemainingMS // the ms that KEYS[key] had left, 0 or more
	valueRemainingS  // the same in seconds
	valueExtended    // valueLeft of KEYS[key] plus ARGV[arg]
	valueStatus      // {ok = text}
	valueFailure     // {err = text}
	valueJoined      // the texts of items, one behind the other
	valueTable       // {items}
	valueUnknown     // a reply that differs between masters
)

// value has indexes from 0.
type luaValue struct {
	kind  valueKind
	n     int64
	text  string
	key   int
	arg   int
	items []luaValue
}

const (
	// maxItems of a table, with those of the tables within it.
	maxItems = 64
	// maxParts of a text that is put together, and maxLiteral bytes of the script's in it.
	maxParts   = 16
	maxLiteral = 1024
	// maxNumber is the largest number that Lua counts exactly.
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

// truth is whether a condition holds that is this value.
func (v luaValue) truth() bool { return !v.is(valueNil, valueFalse) }

// size is the number of values in it.
func (v luaValue) size() int {
	n := 1
	for _, item := range v.items {
		n += item.size()
	}
	return n
}

// looksAtKey tells whether it depends on what a key held.
func (v luaValue) dependsOnKey() bool {
	return v.is(valueHeld, valueRemainingMS, valueRemainingS, valueExtended) || slices.ContainsFunc(v.items, luaValue.dependsOnKey)
}

// write appends a text that no other value has.
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
