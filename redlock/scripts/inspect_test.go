package scripts_test

// the scripts that inspect, and that keep notes, on an embedded
// master, a real one, and one before Redis 7.0.

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
)

// looks answers what inspect.lua tells of the key "lock" alone, without times.
func (m *pureMaster) looks(most int) string {
	m.t.Helper()
	before := m.whole()
	said := m.replyOn("inspect", []string{"lock", "notes", "queue"}, most, "1").([]any)
	if after := m.whole(); after != before {
		m.t.Errorf("looking changed the key from %s to %s", before, after)
	}
	lock := said[0].([]any)
	text := fmt.Sprint(lock[0], " ", lock[1], " ", lock[2])
	if left := lock[3].(int64); left < 0 || left > 2*pureFar {
		m.t.Errorf("%s: the key ends in %d ms", text, left)
	}
	for i := 4; i < len(lock); i += 4 {
		if left := lock[i+1].(int64); left < 0 || left > 2*pureFar {
			m.t.Errorf("%s: %v ends in %d ms", text, lock[i], left)
		}
		text += fmt.Sprintf(" %v/%v%v", lock[i], lock[i+2], lock[i+3])
	}
	if queued := said[1].(int64); queued > 0 {
		text += fmt.Sprint(" queue ", queued)
	}
	return text
}

func TestInspect_ReturnsWhatIsAtAKey(t *testing.T) {
	t.Parallel()
	onEveryMaster(t, func(t *testing.T, m *pureMaster) {
		expect := func(what, want string, most int) {
			t.Helper()
			if got := m.looks(most); got != want {
				t.Errorf("%s: told %q, want %q", what, got, want)
			}
		}
		end := m.pureEnd()
		expect("nothing", "none 0 0", 9)
		m.put("token", end)
		expect("a writer", "string 0 1 token/0", 9)
		m.do("HSET", "notes", sha1Hex("token"), "!")
		m.do("ZADD", "queue", end, "one", end+1, "two", 5, "dead")
		expect("a writer with a note and a queue", "string 0 1 token/0! queue 2", 9)
		m.do("DEL", "notes", "queue")
		m.do("SET", "notes", "odd", "PX", 60_000)
		m.do("SET", "queue", "odd", "PX", 60_000)
		expect("notes and queue of another type", "string 0 1 token/0", 9)
		m.readers("gone", m.now()-1, "b", end, "a", end+8, "c", end-8)
		expect("readers", "zset 0 3 a/0 b/0 c/0", 9)
		expect("readers without room for all", "zset 0 3 a/0 b/0", 2)
		m.do("DEL", "lock")
		m.do("HSET", "lock", "n", 7, "3", fmt.Sprint(end, " a token"), "5", fmt.Sprint(end+8, " b"), "1", fmt.Sprint(m.now()-1, " gone"))
		m.do("PEXPIREAT", "lock", end+8)
		expect("permits", "hash 7 2 b/5 a token/3", 9)
		expect("permits without room for all", "hash 7 2 b/5", 1)
		m.put("for ever", 0)
		expect("a string without an end", "odd 0 0", 9)
		m.put(strings.Repeat("x", 1025), end)
		expect("a string that is longer than any token", "odd 0 0", 9)
		m.foreignData(func(string) {
			if got := m.looks(9); !strings.HasPrefix(got, "odd ") || !strings.HasSuffix(got, " 0") {
				t.Errorf("somebody's data is told as %q", got)
			}
		})
	})
}

func TestInspect_ReturnsManyKeysInTheirOrder(t *testing.T) {
	t.Parallel()
	onEveryMaster(t, func(t *testing.T, m *pureMaster) {
		m.do("SET", "a", "token-a", "PX", 60_000)
		m.do("SET", "c", "token-c", "PX", 60_000)
		said := m.replyOn("inspect", []string{"a", "b", "c"}, 4).([]any)
		if len(said) != 3 {
			t.Fatal(said)
		}
		for i, want := range []string{"token-a", "", "token-c"} {
			one := said[i].([]any)
			if want == "" && one[0] != "none" || want != "" && one[4] != want {
				t.Errorf("key %d: %v, want %q", i, one, want)
			}
		}
	})
}

func TestNote_KeepsTheLatestEndAndStartsAgainWhenThereAreTooMany(t *testing.T) {
	t.Parallel()
	onEveryMaster(t, func(t *testing.T, m *pureMaster) {
		end := m.pureEnd()
		m.run("note", "a", "text of a", end+80)
		m.run("note", "b", "text of b", end)
		if got := m.end(); got != end+80 {
			t.Errorf("the notes end %d ms after the last of them", got-end-80)
		}
		m.run("note", "late", "text", m.now()-1)
		if got := m.do("HLEN", "lock"); got != int64(2) || m.do("HGET", "lock", sha1Hex("a")) != "text of a" {
			t.Errorf("%v notes: %v", got, m.do("HGETALL", "lock"))
		}
		m.run("note", "a", "", 0)
		m.run("note", "nobody", "", 0)
		if got := m.do("HLEN", "lock"); got != int64(1) {
			t.Errorf("%v notes are left", got)
		}
		m.run("note", "b", "", 0)
		if got := m.holds(); got != "none" {
			t.Errorf("the last note has left %s", got)
		}
		for i := range 1024 {
			m.do("HSET", "lock", fmt.Sprint("lapsed-", i), "text")
		}
		m.run("note", "c", "text of c", end)
		if got := m.do("HLEN", "lock"); got != int64(1) || m.end() != end {
			t.Errorf("%v notes until %d, want one until %d", got, m.end(), end)
		}
	})
}

// sha1Hex is how the scripts name whose a note is.
func sha1Hex(token string) string {
	sum := sha1.Sum([]byte(token))
	return hex.EncodeToString(sum[:])
}
