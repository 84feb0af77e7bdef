// Where the names of locks, counters and work stand in a call: the key specifications of
// COMMAND. Clients of a Redis Cluster send a command to the daemon at
// which its first name is at home.

package commands

import (
	"slices"
	"strconv"
	"strings"

	"redlockd/commands/arg"
)

// keySpec has the places of the names in a command.
type keySpec struct {
	first    int  // the word of the first name, the command is word 0; 0 = it has none
	step     int  // from one name to the next
	several  bool // all words from there on, or as many as the word before them gives
	counted  bool // as many as the word before them gives
	optional bool // there need not be any
}

// keySpecOf finds it in the arguments of the row.
func keySpecOf(row *Command) keySpec {
	at := 1 + strings.Count(row.Full, "|")
	for i, a := range row.Args {
		name, step := a, 1
		if a.Kind == arg.KindBlock && a.Multiple {
			name, step = a.Parts[0], len(a.Parts)
		}
		if name.Kind == arg.KindKey {
			counted := i > 0 && row.Args[i-1].Name == "numkeys"
			return keySpec{first: at + i, step: step, several: a.Multiple, counted: counted, optional: a.Optional}
		}
	}
	return keySpec{}
}

// keysOf are the names in a call, whose number of words fits the command; none if their number
// is wrong.
func (s keySpec) keysOf(words []string) (keys []string) {
	end := len(words)
	switch {
	case s.counted:
		n, err := strconv.Atoi(words[s.first-1])
		if err != nil || n < 0 || n > (end-s.first)/s.step {
			return nil
		}
		end = s.first + n*s.step
	case !s.several:
		end = min(end, s.first+1)
	}
	for i := s.first; i < end; i += s.step {
		keys = append(keys, words[i])
	}
	return keys
}

// positions are the first name, the last one and the step, as COMMAND INFO has them. Redis has
// zeros for its own commands whose names are counted. Some clients have no other way to find
// the first name of ours.
func (s keySpec) positions(row *Command) (first, last, step Reply) {
	switch {
	case s.first == 0 || s.counted && row.Redis:
		return Int(0), Int(0), Int(0)
	case s.several && !s.counted:
		return Int(int64(s.first)), Int(-1), Int(int64(s.step))
	}
	return Int(int64(s.first)), Int(int64(s.first)), Int(int64(s.step))
}

// keyFlags describe what is done to the names.
func keyFlags(row *Command) Reply {
	if slices.Contains(row.Flags, "readonly") {
		return statuses([]string{"RO", "access"})
	}
	return statuses([]string{"RW", "access", "update"})
}

// describe is the specification as Redis 7 writes it.
func (s keySpec) describe(row *Command) Reply {
	if s.first == 0 {
		return Array()
	}
	field := func(name string, n int) []Reply { return []Reply{Bulk(name), Int(int64(n))} }
	begin, last := s.first, 0
	if s.several {
		last = -1
	}
	kind, find := "range", slices.Concat(field("lastkey", last), field("keystep", s.step), field("limit", 0))
	if s.counted {
		begin--
		kind, find = "keynum", slices.Concat(field("keynumidx", 0), field("firstkey", 1), field("keystep", s.step))
	}
	return Array(Map(
		Bulk("flags"), keyFlags(row),
		Bulk("begin_search"), Map(Bulk("type"), Bulk("index"), Bulk("spec"), Map(field("index", begin)...)),
		Bulk("find_keys"), Map(Bulk("type"), Bulk(kind), Bulk("spec"), Map(find...)),
	))
}
