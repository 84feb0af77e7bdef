// What the mock master does beside the keys of locks: lists that wake waiters,
// messages, and commands without keys.
package dropin

import (
	"slices"
	"strings"
)

// signal is the list at key; nil if there is none. A key that a list command
// is used on is no lock.
func (s *store) signal(key string) (it *item, ok bool) {
	s.signals[key] = true
	it = s.items[key]
	return it, it == nil || it.isList
}

func mockPush(s *store, w []string) Reply {
	it, ok := s.signal(w[1])
	if !ok {
		return replyWrongType
	}
	if it == nil {
		it = &item{isList: true}
		s.items[w[1]] = it
	}
	it.list = append(it.list, w[2:]...)
	return number(int64(len(it.list)))
}

func mockLen(s *store, w []string) Reply {
	it, ok := s.signal(w[1])
	switch {
	case !ok:
		return replyWrongType
	case it == nil:
		return number(0)
	}
	return number(int64(len(it.list)))
}

// mockTrim: nobody looks into the list.
func mockTrim(s *store, w []string) Reply {
	if _, ok := s.signal(w[1]); !ok {
		return replyWrongType
	}
	return replyOK
}

// mockKeys serves one glob whose only special character is a star at its end,
// for scripts that are given no keys. What it finds is declared by it.
func mockKeys(s *store, w []string) Reply {
	prefix, star := strings.CutSuffix(w[1], "*")
	if !s.patterns || !star || prefix == "" || strings.ContainsAny(prefix, `*?[\`) || s.pattern != "" && s.pattern != w[1] {
		return s.refuse("it looks for keys that are not among KEYS")
	}
	s.pattern = w[1]
	list := Reply{Kind: KindArray}
	for key := range s.items {
		if strings.HasPrefix(key, prefix) {
			s.declared[key] = true
			list.Items = append(list.Items, bulk(key))
		}
	}
	return list
}

func mockPublish(s *store, _ []string) Reply {
	s.publish = true
	return number(0)
}

// mockSelect: there is one database; where the number comes from is looked at
// when the script is judged.
func mockSelect(s *store, w []string) Reply {
	if !slices.Contains(s.selects, w[1]) {
		s.selects = append(s.selects, w[1])
	}
	if n, ok := parseInt(w[1]); !ok || n < 0 {
		return failed("ERR DB index is out of range")
	}
	return replyOK
}

func mockPing(_ *store, w []string) Reply {
	if len(w) == 2 {
		return bulk(w[1])
	}
	return status("PONG")
}

func mockEcho(_ *store, w []string) Reply { return bulk(w[1]) }

func mockTime(s *store, _ []string) Reply {
	return s.refuse("it asks for the TIME, so no two masters answer alike")
}
