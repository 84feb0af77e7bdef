package sim

import (
	"strconv"
	"strings"

	"redlockd/pool"
)

// handlers are the commands a master knows. One that is missing is refused
// loudly (see execute), so that a new script cannot fail in silence.
var handlers = map[string]func(s *server, a []string) pool.Reply{
	"SET": (*server).set, "GET": (*server).get, "STRLEN": (*server).strlen, "DEL": (*server).del, "UNLINK": (*server).del,
	"EXISTS": (*server).exists, "TYPE": (*server).kindOf,
	"PTTL": (*server).pttl, "PEXPIRETIME": (*server).pexpiretime,
	"PEXPIREAT": (*server).pexpireat, "PEXPIRE": (*server).pexpire, "PERSIST": (*server).persist,
	"ZADD": (*server).zadd, "ZSCORE": (*server).zscore, "ZREM": (*server).zrem, "ZCARD": (*server).zcard,
	"ZRANGE": (*server).zrange, "ZREMRANGEBYSCORE": (*server).zremrangebyscore, "ZRANGEBYSCORE": (*server).zrangebyscore,
	"ZCOUNT": (*server).zcount,
	"HSET":   (*server).hset, "HGET": (*server).hget, "HMGET": (*server).hmget, "HGETALL": (*server).hgetall,
	"HDEL": (*server).hdel, "HLEN": (*server).hlen,
	"TIME": (*server).time, "INFO": (*server).info, "CONFIG": (*server).config,
	"PING":     func(*server, []string) pool.Reply { return status("PONG") },
	"SELECT":   (*server).choose,
	"PUBLISH":  func(*server, []string) pool.Reply { return number(0) },
	"FLUSHALL": func(s *server, _ []string) pool.Reply { clear(s.memory); return ok },
}

// choose knows one database only.
func (s *server) choose(a []string) pool.Reply {
	if a[1] != "0" {
		return refusal("ERR DB index is out of range")
	}
	return ok
}

// look finds a key that has not expired; expired ones go when they are met.
func (s *server) lookup(key string) *storedValue {
	v := s.memory[key]
	if v != nil && v.expires != 0 && s.now > v.expires {
		delete(s.memory, key)
		if s.world != nil && s.world.Scenario.MaxWait > 0 {
			s.announce(key)
		}
		return nil
	}
	return v
}

// typed is a key that must be of a kind, or absent.
func (s *server) typed(key string, k kind) (*storedValue, bool) {
	v := s.lookup(key)
	return v, v == nil || v.kind == k
}

func (s *server) set(a []string) pool.Reply {
	if len(a) < 3 {
		return syntaxError
	}
	next := &storedValue{text: a[2]}
	nx, xx := false, false
	for i := 3; i < len(a); i++ {
		switch strings.ToUpper(a[i]) {
		case "NX":
			nx = true
		case "XX":
			xx = true
		case "PX", "PXAT":
			if i+1 == len(a) {
				return syntaxError
			}
			n, err := strconv.ParseInt(a[i+1], 10, 64)
			if err != nil {
				return notInteger
			}
			if n <= 0 {
				return refusal("ERR invalid expire time in 'set' command")
			}
			if next.expires = n; strings.EqualFold(a[i], "PX") {
				next.expires += s.now
			}
			i++
		default:
			return syntaxError
		}
	}
	if here := s.lookup(a[1]) != nil; nx && here || xx && !here {
		return null
	}
	s.memory[a[1]] = next
	return ok
}

func (s *server) get(a []string) pool.Reply {
	v, fits := s.typed(a[1], kindString)
	switch {
	case !fits:
		return wrongType
	case v == nil:
		return null
	}
	return text(v.text)
}

func (s *server) strlen(a []string) pool.Reply {
	r := s.get(a)
	if r.Err != nil {
		return r
	}
	return number(int64(len(r.Str)))
}

func (s *server) del(a []string) pool.Reply {
	n := int64(0)
	for _, key := range a[1:] {
		if s.lookup(key) != nil {
			delete(s.memory, key)
			n++
		}
	}
	return number(n)
}

func (s *server) exists(a []string) pool.Reply {
	n := int64(0)
	for _, key := range a[1:] {
		if s.lookup(key) != nil {
			n++
		}
	}
	return number(n)
}

func (s *server) kindOf(a []string) pool.Reply {
	if v := s.lookup(a[1]); v != nil {
		return status(v.kind.String())
	}
	return status("none")
}

func (s *server) pexpiretime(a []string) pool.Reply {
	v := s.lookup(a[1])
	switch {
	case v == nil:
		return number(-2)
	case v.expires == 0:
		return number(-1)
	}
	return number(v.expires)
}

func (s *server) pttl(a []string) pool.Reply {
	at := s.pexpiretime(a)
	if at.Int > 0 {
		at.Int = max(0, at.Int-s.now)
	}
	return at
}

func (s *server) pexpire(a []string) pool.Reply {
	n, err := strconv.ParseInt(a[2], 10, 64)
	if err != nil {
		return notInteger
	}
	return s.expireAt(a[1], s.now+n, a[3:])
}

func (s *server) pexpireat(a []string) pool.Reply {
	n, err := strconv.ParseInt(a[2], 10, 64)
	if err != nil {
		return notInteger
	}
	return s.expireAt(a[1], n, a[3:])
}

func (s *server) expireAt(key string, at int64, flags []string) pool.Reply {
	v := s.lookup(key)
	if v == nil {
		return number(0)
	}
	for _, flag := range flags {
		skip := false
		switch strings.ToUpper(flag) {
		case "NX":
			skip = v.expires != 0
		case "XX":
			skip = v.expires == 0
		case "GT":
			skip = v.expires == 0 || at <= v.expires
		case "LT":
			skip = v.expires != 0 && at >= v.expires
		default:
			return refusal("ERR Unsupported option " + flag)
		}
		if skip {
			return number(0)
		}
	}
	if v.expires = at; at <= s.now {
		delete(s.memory, key)
	}
	return number(1)
}

func (s *server) persist(a []string) pool.Reply {
	v := s.lookup(a[1])
	if v == nil || v.expires == 0 {
		return number(0)
	}
	v.expires = 0
	return number(1)
}
