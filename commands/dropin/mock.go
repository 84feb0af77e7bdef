// The commands that a probed script may use, each as Redis 7 does it.
package dropin

import (
	"math"
	"strconv"
	"strings"
)

// mockCommand is one row: the number of words it takes and which are keys.
type mockCommand struct {
	least, most int // words with the name; most 0: any
	first, last int // keys; first 0: none, last 0: to the end
	step        int
	handle      func(s *store, w []string) Reply
}

func on(least, most int, handle func(*store, []string) Reply) mockCommand {
	return mockCommand{least: least, most: most, first: 1, last: 1, handle: handle}
}

func onAll(handle func(*store, []string) Reply) mockCommand {
	return mockCommand{least: 2, first: 1, handle: handle}
}

func keyless(least, most int, handle func(*store, []string) Reply) mockCommand {
	return mockCommand{least: least, most: most, handle: handle}
}

// mockCommands is never changed.
var mockCommands = map[string]mockCommand{
	"get": on(2, 2, mockGet), "getdel": on(2, 2, mockGetDel), "getset": on(3, 3, mockGetSet),
	"set": on(3, 0, mockSet), "setnx": on(3, 3, mockSetNX), "setex": on(4, 4, mockSetEX), "psetex": on(4, 4, mockSetEX),
	"del": onAll(mockDel), "unlink": onAll(mockDel), "exists": onAll(mockExists), "touch": onAll(mockExists),
	"delex": on(2, 4, mockDelIfEqual), "delifeq": on(3, 3, mockDelIfEqual),
	"mget": onAll(mockMGet), "mset": {least: 3, first: 1, step: 2, handle: mockMSet}, "msetnx": {least: 3, first: 1, step: 2, handle: mockMSet},
	"expire": on(3, 4, mockExpire), "pexpire": on(3, 4, mockExpire), "expireat": on(3, 4, mockExpire), "pexpireat": on(3, 4, mockExpire),
	"persist": on(2, 2, mockPersist),
	"ttl":     on(2, 2, mockTTL), "pttl": on(2, 2, mockTTL), "expiretime": on(2, 2, mockTTL), "pexpiretime": on(2, 2, mockTTL),
	"type": on(2, 2, mockType), "strlen": on(2, 2, mockStrlen), "getrange": on(4, 4, mockGetRange), "substr": on(4, 4, mockGetRange),
	"incr": on(2, 2, mockIncr), "decr": on(2, 2, mockIncr), "incrby": on(3, 3, mockIncr), "decrby": on(3, 3, mockIncr),
	"lpush": on(3, 0, mockPush), "rpush": on(3, 0, mockPush), "llen": on(2, 2, mockLen), "ltrim": on(4, 4, mockTrim),
	"keys":    keyless(2, 2, mockKeys),
	"publish": keyless(3, 3, mockPublish), "spublish": keyless(3, 3, mockPublish),
	"select": keyless(2, 2, mockSelect), "ping": keyless(1, 2, mockPing), "echo": keyless(2, 2, mockEcho),
	"time": keyless(1, 1, mockTime),
}

func mockGet(s *store, w []string) Reply {
	it, ok := s.text(w[1])
	switch {
	case !ok:
		return replyWrongType
	case it == nil:
		return Reply{}
	}
	return bulk(it.value)
}

func mockGetDel(s *store, w []string) Reply {
	r := mockGet(s, w)
	if r.Kind == KindBulk {
		delete(s.items, w[1])
	}
	return r
}

func mockGetSet(s *store, w []string) Reply {
	r := mockGet(s, w)
	if r.Kind != KindError {
		s.put(w[1], w[2], 0)
	}
	return r
}

func mockSet(s *store, w []string) Reply {
	r, err := ParseSet(w)
	if err != nil {
		return errorReply(err)
	}
	it := s.items[r.Key]
	before := mockGet(s, w)
	if before.Kind == KindError && (r.Get || r.When == IfEqual) {
		return before
	}
	expires := int64(0)
	switch {
	case r.Expiry.Kind == KeepExpiry && it != nil:
		expires = it.expires
	case r.Expiry.Kind == At:
		expires = r.Expiry.MS
	case r.Expiry.Kind == After:
		var ok bool
		if expires, ok = s.until(r.Expiry.MS); !ok {
			return errorReply(errExpire("set"))
		}
	}
	writes := r.When == Always || r.When == IfAbsent && it == nil || r.When == IfPresent && it != nil ||
		r.When == IfEqual && it != nil && it.value == r.Equal
	if writes {
		s.put(r.Key, r.Value, expires)
	}
	switch {
	case r.Get:
		return before
	case writes:
		return replyOK
	}
	return Reply{}
}

func mockSetNX(s *store, w []string) Reply {
	if s.items[w[1]] != nil {
		return number(0)
	}
	s.put(w[1], w[2], 0)
	return number(1)
}

func mockSetEX(s *store, w []string) Reply {
	name := strings.ToLower(w[0])
	option := "EX"
	if name == "psetex" {
		option = "PX"
	}
	ms, err := parseExpiry(w[2], option, name)
	if err != nil {
		return errorReply(err)
	}
	expires, ok := s.until(ms)
	if !ok {
		return errorReply(errExpire(name))
	}
	s.put(w[1], w[3], expires)
	return replyOK
}

func mockDel(s *store, w []string) Reply {
	n := int64(0)
	for _, key := range w[1:] {
		if s.items[key] != nil {
			n++
			delete(s.items, key)
		}
	}
	return number(n)
}

func mockExists(s *store, w []string) Reply {
	n := int64(0)
	for _, key := range w[1:] {
		if s.items[key] != nil {
			n++
		}
	}
	return number(n)
}

func mockDelIfEqual(s *store, w []string) Reply {
	r, err := ParseDeleteIfEqual(w)
	if err != nil {
		return errorReply(err)
	}
	it, ok := s.text(r.Key)
	if !ok {
		return replyWrongType
	}
	if it == nil || it.value != r.Equal {
		return number(0)
	}
	delete(s.items, r.Key)
	return number(1)
}

// mockMGet: a list is nil, not an error.
func mockMGet(s *store, w []string) Reply {
	list := Reply{Kind: KindArray}
	for _, key := range w[1:] {
		it, ok := s.text(key)
		if ok && it != nil {
			list.Items = append(list.Items, bulk(it.value))
		} else {
			list.Items = append(list.Items, Reply{})
		}
	}
	return list
}

func mockMSet(s *store, w []string) Reply {
	name := strings.ToLower(w[0])
	if len(w)%2 == 0 {
		return errorReply(errArity(name))
	}
	if name == "msetnx" {
		for i := 1; i < len(w); i += 2 {
			if s.items[w[i]] != nil {
				return number(0)
			}
		}
	}
	for i := 1; i < len(w); i += 2 {
		s.put(w[i], w[i+1], 0)
	}
	if name == "msetnx" {
		return number(1)
	}
	return replyOK
}

func mockType(s *store, w []string) Reply {
	switch it := s.items[w[1]]; {
	case it == nil:
		return status("none")
	case it.isList:
		return status("list")
	}
	return status("string")
}

func mockStrlen(s *store, w []string) Reply {
	r := mockGet(s, w)
	if r.Kind == KindError {
		return r
	}
	return number(int64(len(r.Text)))
}

func mockGetRange(s *store, w []string) Reply {
	from, ok1 := parseInt(w[2])
	to, ok2 := parseInt(w[3])
	if !ok1 || !ok2 {
		return errorReply(errNotInteger)
	}
	r := mockGet(s, w)
	if r.Kind == KindError {
		return r
	}
	n := int64(len(r.Text))
	if n == 0 || from < 0 && to < 0 && from > to {
		return bulk("")
	}
	if from < 0 {
		from = n + max(from, -n)
	}
	if to < 0 {
		to = n + max(to, -n) // before the first byte is the first byte
	}
	if to = min(to, n-1); from > to {
		return bulk("")
	}
	return bulk(r.Text[from : to+1])
}

func mockIncr(s *store, w []string) Reply {
	by := int64(1)
	if len(w) == 3 {
		var ok bool
		if by, ok = parseInt(w[2]); !ok || by == math.MinInt64 {
			return errorReply(errNotInteger)
		}
	}
	if strings.HasPrefix(strings.ToLower(w[0]), "decr") {
		by = -by
	}
	it, ok := s.text(w[1])
	if !ok {
		return replyWrongType
	}
	if it == nil {
		it = &item{value: "0"}
		s.items[w[1]] = it
	}
	n, ok := parseInt(it.value)
	if !ok || by > 0 && n > math.MaxInt64-by || by < 0 && n < math.MinInt64-by {
		return errorReply(errNotInteger)
	}
	it.value = strconv.FormatInt(n+by, 10)
	return number(n + by)
}
