// Replies of a master, and what is read out of them.

package wire

import (
	"strconv"
	"strings"

	"github.com/redis/rueidis"
)

// Reply is a master's answer to one command, reduced to what our commands and
// scripts can answer. Kind says which field is valid; the zero Reply
// is nil.
type Reply struct {
	Err   error  // an error reply, or that the connection ended; nothing else is valid then
	Str   string // string or status
	Int   int64
	Items []Reply
	Kind  ReplyKind
}

type ReplyKind uint8

// The shapes our commands and scripts can answer with.
const (
	ReplyNil ReplyKind = iota
	ReplyInt
	ReplyString
	ReplyArray
	ReplyError
)

// Number reads an integer that a master sends as an integer or as digits, as
// it does for scores and TIME.
func (r Reply) Number() (int64, bool) {
	switch r.Kind {
	case ReplyInt:
		return r.Int, true
	case ReplyString:
		if n, err := strconv.ParseInt(r.Str, 10, 64); err == nil {
			return n, true
		}
		// RESP3 scores travel as doubles; ours are integers below 2⁵³, exact in them.
		if f, err := strconv.ParseFloat(r.Str, 64); err == nil && f >= 0 && f < 1<<53 {
			return int64(f), true
		}
	}
	return 0, false
}

// MasterError is an error reply: the master answered and refused the command.
// Every other error in a Reply means that the connection has ended.
type MasterError string

func (e MasterError) Error() string { return string(e) }

func (e MasterError) Begins(code string) bool {
	return string(e) == code || strings.HasPrefix(string(e), code+" ")
}

// Begins reports whether the reply is an error that begins with this code.
func (r Reply) Begins(code string) bool {
	err, ok := r.Err.(MasterError)
	return ok && err.Begins(code)
}

func Failed(err error) Reply {
	if e, ok := rueidis.IsRedisErr(err); ok {
		err = MasterError(e.Error())
	}
	return Reply{Kind: ReplyError, Err: err}
}

func decode(result rueidis.RedisResult) Reply {
	m, err := result.ToMessage()
	if err != nil {
		if rueidis.IsRedisNil(err) {
			return Reply{}
		}
		return Failed(err)
	}
	return decodeMessage(m)
}

func decodeMessage(m rueidis.RedisMessage) Reply {
	switch {
	case m.IsNil():
		return Reply{}
	case m.IsInt64():
		n, _ := m.AsInt64()
		return Reply{Kind: ReplyInt, Int: n}
	case m.IsMap(): // CONFIG GET; flattened as RESP2 has it
		pairs, err := m.ToMap()
		if err != nil {
			return Failed(err)
		}
		r := Reply{Kind: ReplyArray}
		for name, value := range pairs {
			r.Items = append(r.Items, Reply{Kind: ReplyString, Str: name}, decodeMessage(value))
		}
		return r
	case m.IsArray():
		list, err := m.ToArray()
		if err != nil {
			return Failed(err)
		}
		r := Reply{Kind: ReplyArray, Items: make([]Reply, len(list))}
		for i := range list {
			r.Items[i] = decodeMessage(list[i])
		}
		return r
	}
	s, err := m.ToString() // doubles, too: their text is kept
	if err != nil {
		return Failed(err)
	}
	return Reply{Kind: ReplyString, Str: s}
}

// ParseTime reads the answer of TIME, in µs.
func ParseTime(r Reply) (us int64, ok bool) {
	if r.Kind != ReplyArray || len(r.Items) != 2 {
		return 0, false
	}
	s, ok1 := r.Items[0].Number()
	u, ok2 := r.Items[1].Number()
	return s*1_000_000 + u, ok1 && ok2
}

func FirstError(replies ...Reply) string {
	for _, r := range replies {
		if r.Err != nil {
			return r.Err.Error()
		}
	}
	return "not a number"
}

// InfoField reads one field of INFO's text; "" if it is absent.
func InfoField(info, name string) string {
	for line := range strings.SplitSeq(info, "\n") {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// IsDenied reports whether an error means that the user may not run the command. In scripts
// servers of different age word it differently.
func IsDenied(text string) bool {
	for _, part := range []string{"NOPERM", "ACL failure in script", "no permission", "can't run this command", "can't access at least one"} {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}
