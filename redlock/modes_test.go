package redlock

// modes_test.go: readers, permits and several keys through daemons on real
// masters; what the tests of all modes share.

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"redlockd/redlock/redlocktest"
)

// ask requests a lock and waits for the masters' answers.
func (d *daemon) ask(r LockRequest) (Grant, error) {
	d.t.Helper()
	if r.TTL == 0 {
		r.TTL = long
	}
	a := receive(d.t, d.request(r))
	d.idle()
	return a.grant, a.err
}

// get is ask for what must be granted.
func (d *daemon) get(r LockRequest) Grant {
	d.t.Helper()
	g, err := d.ask(r)
	if err != nil || g.Validity() <= 0 || g.Fence <= 0 {
		d.t.Fatalf("%+v: %v, want a grant", r, err)
	}
	return g
}

// held wants a request to be refused because of what others hold.
func (d *daemon) held(r LockRequest) {
	d.t.Helper()
	g, err := d.ask(r)
	if err == nil {
		d.t.Fatalf("two tokens hold %q: %+v was granted with fence %d", r.Key, r, g.Fence)
	}
	if !errors.Is(err, ErrHeld) {
		d.t.Fatalf("%+v: %v, want ErrHeld", r, err)
	}
}

// prolongAll extends one or several keys.
func (d *daemon) prolongAll(token Token, ttl time.Duration, keys ...Key) (Grant, error) {
	d.t.Helper()
	g, err := redlocktest.Prolong(d.t, d.Leases, ExtendRequest{Key: keys[0], More: keys[1:], Token: token, TTL: ttl})
	d.idle()
	return g, err
}

// standsThere looks in one step: what stands there may be on its way.
const standsThere = `
local kind = redis.call('TYPE', KEYS[1]).ok
local items = {}
if kind == 'string' then items = {redis.call('GET', KEYS[1])} end
if kind == 'zset' then items = redis.call('ZRANGE', KEYS[1], 0, -1) end
if kind == 'hash' then items = redis.call('HKEYS', KEYS[1]) end
table.insert(items, 1, kind)
return items`

// stands is what each master has at a key, in one word: "-" for nothing, the
// token of a string, the members of a zset, slots and tokens of a hash.
func (c *cluster) stands(key string) string {
	c.t.Helper()
	text := ""
	for i := range c.servers {
		said := c.do(i, "EVAL", standsThere, 1, key).([]any)
		switch kind, items := said[0], said[1:]; kind {
		case "none":
			text += " -"
		case "string":
			text += fmt.Sprint(" ", items[0])
		case "zset":
			text += fmt.Sprint(" readers", items)
		case "hash":
			text += " permits"
			for _, slot := range items {
				if slot != "n" {
					text += fmt.Sprint(":", slot)
				}
			}
		default:
			text += fmt.Sprint(" ", kind)
		}
	}
	return text[1:]
}

const tokenA, tokenB, tokenC = Token("token-of-a"), Token("token-of-b"), Token("token-of-c")

func TestModes_EveryModeRefusesEveryOther(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one, two := c.daemon(), c.daemon()
	requests := map[string]LockRequest{
		"exclusive":            {},
		"exclusive, own token": {Token: tokenB},
		"permit":               {Mode: PermitsOf(2)},
		"reader":               {Mode: Readers},
		"several":              {More: []Key{"z"}},
		"several readers":      {More: []Key{"z"}, Mode: Readers},
	}
	together := map[string]string{"reader": "several readers", "several readers": "reader"}
	for first, r := range requests {
		for second, other := range requests {
			if second == first || together[first] == second {
				continue
			}
			r.Key, other.Key = "k", "k"
			g := one.get(r)
			two.held(other)
			one.free("k", g.Token)
			if len(r.More) > 0 {
				one.free("z", g.Token)
			}
			if !c.empty(0, 1, 2) {
				t.Fatalf("%s, then %s: something is left: %s, %s", first, second, c.stands("k"), c.stands("z"))
			}
		}
	}
}

// Foreign data is never taken for a lock of redlockd's, or changed.
func TestModes_ForeignDataIsNeitherTakenNorTouched(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	d := c.daemon()
	soon := time.Now().Add(time.Hour).UnixMilli()
	for _, data := range [][]any{
		{"ZADD", "k", 1, "member"}, {"ZADD", "k", soon, string(tokenA)}, {"HSET", "k", "f", "v"},
		{"HSET", "k", "n", "many"}, {"RPUSH", "k", "x"}, {"SADD", "k", "x"},
	} {
		for _, expires := range []bool{false, true} {
			dump := func(i int) any { return []any{c.do(i, "DUMP", "k"), c.ends(i, "k")} }
			var before []any
			for i := range c.servers {
				c.do(i, "DEL", "k")
				c.do(i, data...)
				if expires {
					c.do(i, "PEXPIREAT", "k", soon+1000)
				}
				before = append(before, dump(i))
			}
			for what, r := range map[string]LockRequest{
				"reader": {Mode: Readers}, "permit": {Mode: PermitsOf(3)}, "permit, own token": {Mode: PermitsOf(3), Token: tokenA},
				"exclusive, own token": {Token: tokenA}, "several": {More: []Key{"z"}}, "several readers": {More: []Key{"z"}, Mode: Readers},
			} {
				r.Key = "k"
				if g, err := d.ask(r); !errors.Is(err, ErrWrongType) {
					t.Errorf("%s on %v, expiring %v: %v, %v, want ErrWrongType", what, data, expires, g.Token, err)
				}
			}
			if was, err := d.unlock("k", tokenA); was || err != nil {
				t.Errorf("release on %v: %v, %v", data, was, err)
			}
			if _, err := d.prolongAll(tokenA, long, "k"); !errors.Is(err, ErrNotHeld) {
				t.Errorf("extend on %v: %v", data, err)
			}
			if _, err := d.prolongAll(tokenA, long, "z", "k"); !errors.Is(err, ErrNotHeld) {
				t.Errorf("extend of several on %v: %v", data, err)
			}
			for i := range c.servers {
				if after := dump(i); fmt.Sprint(after) != fmt.Sprint(before[i]) {
					t.Errorf("%v, expiring %v, was changed on master %s", data, expires, name(i))
				}
			}
		}
	}
}

func TestACL_AllowsEveryMode(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	c.aclUser()
	d := c.daemon(restricted)
	// A master that is slow to tell of the writer keeps it: what is extended below is
	// another key, which every master has in the same way.
	d.get(LockRequest{Key: "u", Mode: Readers, Token: tokenA})
	d.get(LockRequest{Key: "u", Token: tokenA})
	d.get(LockRequest{Key: "u", Mode: Readers, Token: tokenA})
	d.get(LockRequest{Key: "k", Mode: Readers, Token: tokenA})
	d.get(LockRequest{Key: "k", Mode: Readers, Token: tokenB})
	d.held(LockRequest{Key: "k", Token: tokenA})
	d.get(LockRequest{Key: "p", Mode: PermitsOf(2), Token: tokenA})
	d.get(LockRequest{Key: "p", Mode: PermitsOf(2), Token: tokenB})
	d.held(LockRequest{Key: "p", Mode: PermitsOf(2), Token: tokenC})
	d.get(LockRequest{Key: "x", More: []Key{"y"}, Token: tokenA})
	d.get(LockRequest{Key: "r", More: []Key{"s"}, Mode: Readers, Token: tokenA})
	for _, keys := range [][]Key{{"k"}, {"p"}, {"x", "y"}, {"r", "s"}} {
		c.do(0, "DEL", string(keys[0])) // the extend repairs it
		if _, err := d.prolongAll(tokenA, long, keys...); err != nil {
			t.Errorf("%q: %v", keys, err)
		}
	}
	d.settled(0, 1, 2)
	for _, key := range []Key{"u", "k", "p", "x", "y", "r", "s"} {
		d.free(key, tokenA)
	}
	for i := range c.servers {
		if said := c.denied(i); said != "" {
			t.Errorf("master %s refused: %s", name(i), said)
		}
	}
}
