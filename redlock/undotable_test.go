package redlock

// undotable_test.go: a token requests what it holds once more, in every mode and of every kind,
// and the copies of both requests would end alike.

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"redlockd/pool"
	"redlockd/pool/faulty"
	"redlockd/redlock/lease"
	"redlockd/redlock/redlocktest"
)

// ownModes are the ways in which one token can request a key.
var ownModes = []struct {
	name    string
	request LockRequest
}{
	{"exclusive", LockRequest{}},
	{"exclusive FAIR", LockRequest{Fair: true}},
	{"reader", LockRequest{Mode: Readers}},
	{"reader FAIR", LockRequest{Mode: Readers, Fair: true}},
	{"permit of 2", LockRequest{Mode: PermitsOf(2)}},
	{"permit of 3", LockRequest{Mode: PermitsOf(3)}},
	{"two keys", LockRequest{More: []Key{"-free"}}},
	{"two keys as a reader", LockRequest{Mode: Readers, More: []Key{"-free"}}},
	{"two keys, one of another", LockRequest{More: []Key{"-taken"}}},
	{"SET NX", LockRequest{Mode: Valued}},
}

// meeting is one token's two requests for a key.
type meeting struct {
	name          string
	key           string
	token         Token
	first, second LockRequest
	holds         bool              // it has the first one
	kinds         map[string]string // of its copies after that, by master and key
}

// meetings are those of all modes with all modes, and of nothing with all modes.
func (c *cluster) meetings(one *daemon) (all []*meeting) {
	c.t.Helper()
	for i := range len(ownModes) + 1 {
		for j, then := range ownModes {
			m := &meeting{name: "nothing, then " + then.name, key: fmt.Sprintf("k-%d-%d", i, j), token: Token(fmt.Sprintf("holder-%d-%d", i, j)), kinds: map[string]string{}}
			one.get(LockRequest{Key: Key(m.key + "-taken"), TTL: long})
			m.second = m.of(then.request)
			if i < len(ownModes) && ownModes[i].name != "two keys, one of another" {
				m.name, m.holds, m.first = ownModes[i].name+", then "+then.name, true, m.of(ownModes[i].request)
				one.get(m.first)
			} else if i < len(ownModes) {
				continue
			}
			all = append(all, m)
		}
	}
	one.idle()
	for _, m := range all {
		for i := range c.servers {
			for _, key := range m.keys() {
				if kind := c.kindOf(i, key, m.token); kind != "" {
					m.kinds[name(i)+key] = kind
				} else if m.holds && (key == m.key || len(m.first.More) > 0) {
					c.t.Fatalf("%s: no copy at %s on master %s after the first request", m.name, key, name(i))
				}
			}
		}
	}
	return all
}

func (m *meeting) of(r LockRequest) LockRequest {
	r.Key, r.Token, r.TTL = Key(m.key), m.token, long
	for i, suffix := range slices.Clone(r.More) {
		r.More = slices.Clone(r.More)
		r.More[i] = Key(m.key) + suffix
	}
	return r
}

func (m *meeting) keys() []string { return []string{m.key, m.key + "-free"} }

// kindOf is how a master holds a key for a token, "" if it does not.
func (c *cluster) kindOf(i int, key string, token Token) string {
	c.t.Helper()
	switch kind := c.do(i, "TYPE", key); kind {
	case "string":
		if c.do(i, "GET", key) == string(token) {
			return "string"
		}
	case "zset":
		if c.do(i, "ZSCORE", key, string(token)) != nil {
			return "zset"
		}
	case "hash":
		for _, value := range c.do(i, "HVALS", key).([]any) {
			if strings.HasSuffix(value.(string), " "+string(token)) {
				return "hash"
			}
		}
	}
	return ""
}

// alikeScript has the copy of a token end when the attempt does that is about to leave.
const alikeScript = `
local key, token, ends = KEYS[1], ARGV[1], ARGV[2]
local kind = redis.call('TYPE', key).ok
if kind == 'string' and redis.call('GET', key) == token then redis.call('PEXPIREAT', key, ends) end
if kind == 'zset' and redis.call('ZSCORE', key, token) then
  redis.call('ZADD', key, ends, token)
  redis.call('PEXPIREAT', key, ends)
end
if kind == 'hash' then
  local all = redis.call('HGETALL', key)
  for i = 1, #all, 2 do
    if string.sub(all[i + 1], -#token - 1) == ' ' .. token then
      redis.call('HSET', key, all[i], ends .. ' ' .. token)
      redis.call('PEXPIREAT', key, ends)
    end
  end
end`

// endsAlike is the trait of a daemon whose first attempt on each master ends like the copy that its
// token has there.
func (c *cluster) endsAlike(all []*meeting) trait {
	byKey := map[string]*meeting{}
	for _, m := range all {
		byKey[m.key] = m
	}
	var mu sync.Mutex
	done := map[string]bool{}
	return func(_ *daemon, o *pool.Options) {
		hooked(o, func(master string, commands []pool.Command, exchange func([]pool.Command) []pool.Reply) []pool.Reply {
			for i := range commands {
				m, end := attemptOf(byKey, commands[i].Args)
				if m == nil {
					continue
				}
				mu.Lock()
				again := done[master+m.key]
				done[master+m.key] = true
				mu.Unlock()
				for _, key := range m.keys() {
					if s := slices.IndexFunc(c.servers, func(s *faulty.Server) bool { return name(slices.Index(c.servers, s)) == master }); !again && s >= 0 {
						if _, err := c.servers[s].Do("EVAL", alikeScript, 1, key, string(m.token), end); err != nil {
							c.t.Error(err)
						}
					}
				}
			}
			return exchange(commands)
		})
	}
}

// attemptOf is the meeting whose acquire a command is, and the end of its copies.
func attemptOf(byKey map[string]*meeting, words []string) (m *meeting, end string) {
	for i, word := range words {
		if m == nil {
			m = byKey[word]
		} else if word == string(m.token) {
			for _, end := range words[i+1:] {
				if ms, err := strconv.ParseInt(end, 10, 64); err == nil && ms > 1e12 {
					return m, end
				}
			}
		}
	}
	return nil, ""
}

// Rule: undo-unlearnt. Whatever becomes of the second request, the token keeps what it had.
func TestUndo_OfARequestThatMetItsOwnTokensCopyLeavesThatAlone(t *testing.T) {
	t.Parallel()
	for _, how := range []struct {
		name      string
		unheard   bool   // masters b and c execute the second request, and their answers come late
		lost      bool   // … or never
		forbidden string // a command that they refuse meanwhile
	}{
		{name: "answered"},
		{name: "late", unheard: true},
		{name: "lost", unheard: true, lost: true},
		{name: "late, refused PEXPIREAT", unheard: true, forbidden: "pexpireat"},
		{name: "late, refused ZADD", unheard: true, forbidden: "zadd"},
		{name: "late, refused DEL", unheard: true, forbidden: "del"},
	} {
		t.Run(how.name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, 3, long)
			c.aclUser()
			one := c.daemon()
			all := c.meetings(one)
			two := c.daemon(relayed, blind, restricted, c.endsAlike(all)) // blind: a heartbeat under way would keep the requests from being sent
			late := []int{1, 2}
			if how.unheard {
				for _, i := range late {
					two.relays[i].Pause(faulty.ToClient)
				}
			}
			if how.forbidden != "" {
				for _, i := range late {
					c.do(i, "ACL", "SETUSER", "redlockd", "-"+how.forbidden)
				}
			}
			var b Batch
			answers := make([]chan error, len(all))
			for i, m := range all {
				answers[i] = make(chan error, 1) // its one answer
				second := m.second.alone()
				second.Mode = lease.Waiting(second.Mode, nil) // it is not repeated
				two.Leases.Lock(&b, second, func(_ Grant, err error) { answers[i] <- err })
			}
			b.Send()
			for i, m := range all {
				err := redlocktest.Receive(t, answers[i])
				if unknown := new(NoQuorum); how.unheard && !errors.As(err, &unknown) {
					t.Fatalf("%s: answered %v, want NoQuorum", m.name, err)
				}
			}
			if how.unheard {
				for _, i := range late {
					two.await(i, "down")
					if how.lost {
						two.relays[i].Cut()
					}
					two.relays[i].Resume()
				}
				for _, i := range late {
					two.await(i, "voting")
				}
			}
			if how.forbidden != "" {
				two.idle()
				for _, i := range late {
					c.do(i, "ACL", "SETUSER", "redlockd", "+"+how.forbidden)
				}
				two.reconnects(late...) // what was refused is sent again
			}
			two.settled(0, 1, 2)
			for _, m := range all {
				for i := range c.servers {
					c.keeps(m, i, how.unheard, how.lost && i > 0)
				}
			}
		})
	}
}

// reconnects ends connections of a blind daemon, which notices with its next request.
func (d *daemon) reconnects(lanes ...int) {
	d.t.Helper()
	for _, i := range lanes {
		d.relays[i].Cut()
	}
	if g, err := d.lock("reconnects", long); err == nil {
		_, _ = d.unlock(g.Key, g.Token)
	}
	d.idle()
	for _, i := range lanes {
		d.await(i, "voting")
	}
}

// keeps wants a master to have what the token had before, and nothing of a request that was not
// granted, unless its answer was lost.
func (c *cluster) keeps(m *meeting, i int, undone, lost bool) {
	c.t.Helper()
	for _, key := range m.keys() {
		was, is := m.kinds[name(i)+key], c.kindOf(i, key, m.token)
		switch {
		case was != "" && is == "":
			c.t.Errorf("%s: master %s has lost the copy of a lease that runs at %s", m.name, name(i), key)
		case was == "" && is != "" && undone && !lost:
			c.t.Errorf("%s: master %s keeps a %s at %s of a request that failed", m.name, name(i), is, key)
		case was != is && undone && !lost:
			c.t.Errorf("%s: master %s has a %s instead of a %s at %s", m.name, name(i), is, was, key)
		}
	}
}
