package fake

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"redlockd/pool/wire"
)

// handlers are the commands on the memory.
var handlers = map[string]func(m *Master, a []string) wire.Reply{
	"SET": (*Master).set, "GET": (*Master).get, "MGET": (*Master).mget, "STRLEN": (*Master).strlen, "DEL": (*Master).del,
	"EXISTS": (*Master).exists, "TYPE": (*Master).kindOf,
	"PTTL": (*Master).pttl, "PEXPIRETIME": (*Master).pexpiretime,
	"PEXPIREAT": (*Master).pexpireat, "PEXPIRE": (*Master).pexpire,
	"ZADD": on(Zset, (*Master).zadd), "ZSCORE": on(Zset, (*Master).zscore), "ZMSCORE": on(Zset, (*Master).zmscore), "ZREM": on(Zset, (*Master).zrem), "ZCARD": on(Zset, (*Master).zcard),
	"ZRANGE": on(Zset, (*Master).zrange), "ZREMRANGEBYSCORE": on(Zset, (*Master).zremrangebyscore), "ZRANGEBYSCORE": on(Zset, (*Master).zrangebyscore),
	"ZCOUNT": on(Zset, (*Master).zcount),
	"HSET":   on(Hash, (*Master).hset), "HGET": on(Hash, (*Master).hget), "HMGET": on(Hash, (*Master).hmget), "HGETALL": on(Hash, (*Master).hgetall),
	"HDEL": on(Hash, (*Master).hdel), "HLEN": on(Hash, (*Master).hlen),
	"TIME":    (*Master).time,
	"PING":    func(*Master, []string) wire.Reply { return status("PONG") },
	"SELECT":  (*Master).choose,
	"SCAN":    (*Master).scan,
	"PUBLISH": func(*Master, []string) wire.Reply { return Number(0) },
}

func (m *Master) time([]string) wire.Reply {
	return List(Text(strconv.FormatInt(m.Micros/1_000_000, 10)), Text(strconv.FormatInt(m.Micros%1_000_000, 10)))
}

// choose accepts one database only.
func (m *Master) choose(a []string) wire.Reply {
	if a[1] != "0" {
		return refusal("ERR DB index is out of range")
	}
	return OK
}

// scanPages is how many answers a walk over the keys takes.
const scanPages = 3

// scan walks over the keys in pages; a key is in one of them as long as it is there. Of MATCH it
// takes patterns that end with their only *.
func (m *Master) scan(a []string) wire.Reply {
	page, err := strconv.Atoi(a[1])
	if err != nil || page >= scanPages {
		return refusal("ERR invalid cursor")
	}
	prefix := ""
	for i := 2; i+1 < len(a); i += 2 {
		if strings.EqualFold(a[i], "MATCH") {
			prefix = strings.TrimSuffix(a[i+1], "*")
		}
	}
	found := List()
	for _, key := range slices.Sorted(maps.Keys(m.Memory)) {
		if pageOf(key) == page && strings.HasPrefix(key, prefix) && m.Lookup(key) != nil {
			found.Items = append(found.Items, Text(key))
		}
	}
	return List(Text(strconv.Itoa((page+1)%scanPages)), found)
}

func pageOf(key string) (page int) {
	for i := range len(key) {
		page += int(key[i])
	}
	return page % scanPages
}

// Lookup finds a key that has not expired; it removes expired ones.
func (m *Master) Lookup(key string) *Value {
	v := m.Memory[key]
	if v != nil && v.Expires != 0 && m.Now > v.Expires {
		delete(m.Memory, key)
		if m.Changed != nil {
			m.Changed(key)
		}
		return nil
	}
	return v
}

func (m *Master) set(a []string) wire.Reply {
	if len(a) < 3 {
		return syntaxError
	}
	next := &Value{Text: a[2]}
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
			if next.Expires = n; strings.EqualFold(a[i], "PX") {
				next.Expires += m.Now
			}
			i++
		default:
			return syntaxError
		}
	}
	if here := m.Lookup(a[1]) != nil; nx && here || xx && !here {
		return null
	}
	m.Memory[a[1]] = next
	return OK
}

func (m *Master) get(a []string) wire.Reply {
	v := m.Lookup(a[1])
	switch {
	case v == nil:
		return null
	case v.Kind != String:
		return wrongType
	}
	return Text(v.Text)
}

func (m *Master) mget(a []string) wire.Reply {
	out := List()
	for _, key := range a[1:] {
		item := m.get([]string{a[0], key})
		if item.Err != nil {
			item = null
		}
		out.Items = append(out.Items, item)
	}
	return out
}

func (m *Master) strlen(a []string) wire.Reply {
	r := m.get(a)
	if r.Err != nil {
		return r
	}
	return Number(int64(len(r.Str)))
}

func (m *Master) del(a []string) wire.Reply {
	n := int64(0)
	for _, key := range a[1:] {
		if m.Lookup(key) != nil {
			delete(m.Memory, key)
			n++
		}
	}
	return Number(n)
}

func (m *Master) exists(a []string) wire.Reply {
	n := int64(0)
	for _, key := range a[1:] {
		if m.Lookup(key) != nil {
			n++
		}
	}
	return Number(n)
}

func (m *Master) kindOf(a []string) wire.Reply {
	if v := m.Lookup(a[1]); v != nil {
		return status(v.Kind.String())
	}
	return status("none")
}

func (m *Master) pexpiretime(a []string) wire.Reply {
	v := m.Lookup(a[1])
	switch {
	case v == nil:
		return Number(-2)
	case v.Expires == 0:
		return Number(-1)
	}
	return Number(v.Expires)
}

func (m *Master) pttl(a []string) wire.Reply {
	at := m.pexpiretime(a)
	if at.Int > 0 {
		at.Int = max(0, at.Int-m.Now)
	}
	return at
}

func (m *Master) pexpire(a []string) wire.Reply {
	n, err := strconv.ParseInt(a[2], 10, 64)
	if err != nil {
		return notInteger
	}
	return m.expireAt(a, m.Now+n)
}

func (m *Master) pexpireat(a []string) wire.Reply {
	n, err := strconv.ParseInt(a[2], 10, 64)
	if err != nil {
		return notInteger
	}
	return m.expireAt(a, n)
}

func (m *Master) expireAt(a []string, at int64) wire.Reply {
	v := m.Lookup(a[1])
	switch {
	case len(a) > 3:
		return refusal("ERR Unsupported option " + a[3])
	case v == nil:
		return Number(0)
	}
	if v.Expires = at; at <= m.Now {
		delete(m.Memory, a[1])
	}
	return Number(1)
}
