package sim

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"redlockd/pool"
)

// memory is what a master remembers and may lose.
type memory map[string]*storedValue

// value is one key.
type storedValue struct {
	kind    kind
	text    string
	scores  []scored // by score, then member
	fields  []field  // in the order of their making
	expires int64    // ms of the master's clock, 0 = never
}

type kind uint8

const (
	kindString kind = iota
	kindZset
	kindHash
)

func (k kind) String() string { return [...]string{"string", "zset", "hash"}[k] }

type scored struct {
	score  float64
	member string
}

type field struct{ name, value string }

// clone is a snapshot: what a later restart may come back with.
func (m memory) clone() memory {
	out := make(memory, len(m))
	for key, v := range m {
		twin := *v
		twin.scores, twin.fields = slices.Clone(v.scores), slices.Clone(v.fields)
		out[key] = &twin
	}
	return out
}

func (v *storedValue) score(member string) int {
	return slices.IndexFunc(v.scores, func(s scored) bool { return s.member == member })
}

func (v *storedValue) setScore(member string, score float64) {
	if i := v.score(member); i >= 0 {
		v.scores = slices.Delete(v.scores, i, i+1)
	}
	at, _ := slices.BinarySearchFunc(v.scores, scored{score, member}, func(a, b scored) int {
		return cmp.Or(cmp.Compare(a.score, b.score), cmp.Compare(a.member, b.member))
	})
	v.scores = slices.Insert(v.scores, at, scored{score, member})
}

func (v *storedValue) field(name string) int {
	return slices.IndexFunc(v.fields, func(f field) bool { return f.name == name })
}

func (v *storedValue) setField(name, text string) (added bool) {
	if i := v.field(name); i >= 0 {
		v.fields[i].value = text
		return false
	}
	v.fields = append(v.fields, field{name, text})
	return true
}

// Replies. A status differs from a string in scripts only.
const replyStatus pool.ReplyKind = 100

var (
	ok          = pool.Reply{Kind: replyStatus, Str: "OK"}
	null        = pool.Reply{}
	wrongType   = refusal("WRONGTYPE Operation against a key holding the wrong kind of value")
	syntaxError = refusal("ERR syntax error")
	notInteger  = refusal("ERR value is not an integer or out of range")
	notFloat    = refusal("ERR value is not a valid float")
)

func refusal(text string) pool.Reply {
	return pool.Reply{Kind: pool.ReplyError, Err: pool.MasterError(text)}
}

func number(n int64) pool.Reply           { return pool.Reply{Kind: pool.ReplyInt, Int: n} }
func text(s string) pool.Reply            { return pool.Reply{Kind: pool.ReplyString, Str: s} }
func status(s string) pool.Reply          { return pool.Reply{Kind: replyStatus, Str: s} }
func list(items ...pool.Reply) pool.Reply { return pool.Reply{Kind: pool.ReplyArray, Items: items} }

// decimal writes a score as Redis does: integers without an exponent.
func decimal(f float64) string {
	if f == math.Trunc(f) && math.Abs(f) < 1<<62 {
		return strconv.FormatInt(int64(f), 10)
	}
	return strconv.FormatFloat(f, 'g', 17, 64)
}
