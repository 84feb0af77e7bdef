package fake

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"redlockd/pool/wire"
)

// Memory is what a master stores and may lose.
type Memory map[string]*Value

// Value is the value of one key.
type Value struct {
	Kind    Kind
	Text    string
	Scores  []Scored // by score, then member
	Fields  []Field  // in the order of their making
	Expires int64    // ms of the master's clock, 0 = never
}

// Kind is the type of a value.
type Kind uint8

const (
	String Kind = iota
	Zset
	Hash
)

func (k Kind) String() string { return [...]string{"string", "zset", "hash"}[k] }

// Scored is a member of a sorted set.
type Scored struct {
	Score  float64
	Member string
}

// Field is a field of a hash.
type Field struct{ Name, Value string }

// Clone is a snapshot: what a later restart may come back with.
func (m Memory) Clone() Memory {
	out := make(Memory, len(m))
	for key, v := range m {
		copied := *v
		copied.Scores, copied.Fields = slices.Clone(v.Scores), slices.Clone(v.Fields)
		out[key] = &copied
	}
	return out
}

func (v *Value) score(member string) int {
	return slices.IndexFunc(v.Scores, func(s Scored) bool { return s.Member == member })
}

func (v *Value) setScore(member string, score float64) {
	if i := v.score(member); i >= 0 {
		v.Scores = slices.Delete(v.Scores, i, i+1)
	}
	at, _ := slices.BinarySearchFunc(v.Scores, Scored{score, member}, func(a, b Scored) int {
		return cmp.Or(cmp.Compare(a.Score, b.Score), cmp.Compare(a.Member, b.Member))
	})
	v.Scores = slices.Insert(v.Scores, at, Scored{score, member})
}

func (v *Value) field(name string) int {
	return slices.IndexFunc(v.Fields, func(f Field) bool { return f.Name == name })
}

func (v *Value) setField(name, text string) {
	if i := v.field(name); i >= 0 {
		v.Fields[i].Value = text
		return
	}
	v.Fields = append(v.Fields, Field{name, text})
}

// ReplyStatus is the kind of a status reply. It differs from a string in scripts only.
const ReplyStatus wire.ReplyKind = 100

// Replies of the commands here, and of those that Own adds.
var (
	OK          = wire.Reply{Kind: ReplyStatus, Str: "OK"}
	null        = wire.Reply{}
	wrongType   = refusal("WRONGTYPE Operation against a key holding the wrong kind of value")
	syntaxError = refusal("ERR syntax error")
	notInteger  = refusal("ERR value is not an integer or out of range")
	notFloat    = refusal("ERR value is not a valid float")
	notRange    = refusal("ERR min or max is not a float")
)

func refusal(text string) wire.Reply {
	return wire.Reply{Kind: wire.ReplyError, Err: wire.MasterError(text)}
}

func Number(n int64) wire.Reply           { return wire.Reply{Kind: wire.ReplyInt, Int: n} }
func Text(s string) wire.Reply            { return wire.Reply{Kind: wire.ReplyString, Str: s} }
func status(s string) wire.Reply          { return wire.Reply{Kind: ReplyStatus, Str: s} }
func List(items ...wire.Reply) wire.Reply { return wire.Reply{Kind: wire.ReplyArray, Items: items} }

// decimal writes a score as Redis does: integers without an exponent.
func decimal(f float64) string {
	if f == math.Trunc(f) && math.Abs(f) < 1<<62 {
		return strconv.FormatInt(int64(f), 10)
	}
	return strconv.FormatFloat(f, 'g', 17, 64)
}
