// The commands of a mock master that look at an expiry or change it.
package dropin

import (
	"math"
	"strings"
)

// mockExpire serves all four spellings. A time in the past deletes.
func mockExpire(s *store, w []string) Reply {
	name := strings.ToLower(w[0])
	n, ok := parseInt(w[2])
	if !ok {
		return errorReply(errNotInteger)
	}
	if !strings.HasPrefix(name, "p") {
		if n > math.MaxInt64/1000 || n < math.MinInt64/1000 {
			return errorReply(errExpire(name))
		}
		n *= 1000
	}
	if !strings.HasSuffix(name, "at") {
		if n, ok = s.until(n); !ok {
			return errorReply(errExpire(name))
		}
	}
	it := s.items[w[1]]
	if len(w) == 4 {
		holds, known := mockCondition(upper(w[3]), it, n)
		if !known {
			return failed("ERR Unsupported option " + w[3])
		}
		if !holds {
			return number(0)
		}
	}
	if it == nil {
		return number(0)
	}
	it.expires = n
	if n <= s.now {
		delete(s.items, w[1])
	}
	return number(1)
}

// mockCondition is NX, XX, GT or LT of EXPIRE.
func mockCondition(option string, it *item, expires int64) (holds, known bool) {
	endless := it == nil || it.expires == 0
	switch option {
	case "NX":
		return endless, true
	case "XX":
		return !endless, true
	case "GT":
		return !endless && expires > it.expires, true
	case "LT":
		return endless || expires < it.expires, true
	}
	return false, false
}

func mockPersist(s *store, w []string) Reply {
	it := s.items[w[1]]
	if it == nil || it.expires == 0 {
		return number(0)
	}
	it.expires = 0
	return number(1)
}

func mockTTL(s *store, w []string) Reply {
	left := s.remaining(w[1])
	switch name := strings.ToLower(w[0]); {
	case left < 0 || name == "pttl":
		return number(left)
	case name == "ttl":
		return number(inSeconds(left))
	}
	return s.refuse("it asks for a point in time, which no two masters agree on")
}
