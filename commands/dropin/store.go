// What would a master do? A mock of the string commands of Redis, over the few
// keys of one probe and a clock that stands still. It is compared with a real
// redis-server by the tests.
package dropin

import (
	"math"
	"strings"
)

// item is what a key holds: a string or, for waking waiters, a list.
type item struct {
	value   string
	list    []string
	isList  bool
	expires int64 // ms since 1970; 0 never
}

// store is the memory of one master in one probe.
type store struct {
	now      int64 // ms since 1970
	items    map[string]*item
	declared map[string]bool // KEYS
	patterns bool            // keys may be looked for, because none are given

	touched map[string]bool // keys that a command was used on
	signals map[string]bool // keys that a list command was used on
	pattern string          // what KEYS was asked for
	publish bool
	selects []string // what SELECT was told
	refused string   // why the script is not recognised, whatever it answers
}

// refuse notes the first reason; the script cannot undo it by catching errors.
func (s *store) refuse(reason string) Reply {
	if s.refused == "" {
		s.refused = reason
	}
	return failed("ERR " + reason)
}

var (
	replyOK        = status("OK")
	replyWrongType = failed("WRONGTYPE Operation against a key holding the wrong kind of value")
)

// do runs one command.
func (s *store) do(words []string) Reply {
	name := strings.ToLower(words[0])
	c, known := mockCommands[name]
	if !known {
		return s.refuse("it calls " + short(words[0]) + ", which is no command on the string key of a lock")
	}
	if len(words) < c.least || c.most > 0 && len(words) > c.most {
		return failed("ERR Wrong number of args calling Redis command from script")
	}
	for i := c.first; i > 0 && i < len(words) && (c.last == 0 || i <= c.last); i += max(c.step, 1) {
		if !s.declared[words[i]] {
			return s.refuse(name + " uses a key that is not among KEYS")
		}
		s.touched[words[i]] = true
		s.expire(words[i])
	}
	return c.handle(s, words)
}

// expire drops a key whose time is over.
func (s *store) expire(key string) {
	if it := s.items[key]; it != nil && it.expires != 0 && it.expires <= s.now {
		delete(s.items, key)
	}
}

// text is the string at key; ok is false if the key holds a list.
func (s *store) text(key string) (it *item, ok bool) {
	it = s.items[key]
	return it, it == nil || !it.isList
}

// remaining is PTTL: -2 absent, -1 without expiry.
func (s *store) remaining(key string) int64 {
	it := s.items[key]
	switch {
	case it == nil:
		return -2
	case it.expires == 0:
		return -1
	}
	return it.expires - s.now
}

// put writes a string with an expiry in ms since 1970, 0 for none.
func (s *store) put(key, value string, expires int64) {
	s.items[key] = &item{value: value, expires: expires}
	s.expire(key)
}

// until is the end of a lease of ms from now.
func (s *store) until(ms int64) (int64, bool) {
	if ms > math.MaxInt64-s.now {
		return 0, false
	}
	return s.now + ms, true
}

func errorReply(err error) Reply { return failed("ERR " + err.Error()) }

// short is a word of a script in an error, without what could break the line.
func short(word string) string {
	const most = 32
	clean := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || r == '\'' {
			return '?'
		}
		return r
	}, word[:min(len(word), most)])
	return "'" + clean + "'"
}
