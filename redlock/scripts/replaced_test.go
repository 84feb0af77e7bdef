package scripts_test

// what a script replaces by DEL and a write stays as it is where the
// daemon's user may not make that write.

import (
	"fmt"
	"strings"
	"testing"
)

// forbidding has what follows be said by a user that may do all but one command.
func (m *pureMaster) forbidding(command string) {
	m.t.Helper()
	m.do("ACL", "SETUSER", "daemon", "reset", "on", ">pw", "~*", "+@all", "-"+command)
	if !m.exact { // a server before Redis 7.0, or one that is taken for it
		m.do("ACL", "SETUSER", "daemon", "-pexpiretime", "-expiretime")
	}
	if got := m.do("AUTH", "daemon", "pw"); got != "OK" {
		m.t.Fatal(got)
	}
}

// refused runs a script that fails at a write, and wants nothing to be changed by it.
func (m *pureMaster) refused(command, file string, args ...any) {
	m.t.Helper()
	before := m.whole()
	m.forbidding(command)
	said, _ := m.reply(file, args...).(string)
	if !strings.HasPrefix(said, "-") || !strings.Contains(said, "can't run this command") && !strings.Contains(said, "ACL failure") && !strings.Contains(said, "NOPERM") {
		m.t.Errorf("%s without the right to say %s: answered %q", file, command, said)
	}
	m.do("ACL", "SETUSER", "daemon", "+"+command)
	if after := m.whole(); after != before {
		m.t.Errorf("%s without the right to say %s: the key is %.200s, was %.200s", file, command, after, before)
	}
}

func TestScripts_KeepTheWriterThatCannotBecomeAReader(t *testing.T) {
	for kind, master := range map[string]func(*testing.T) *pureMaster{"real": pureReal, "before 7.0": pureOld} {
		t.Run(kind, func(t *testing.T) {
			for _, command := range []string{"zadd", "pexpireat", "del"} {
				m := master(t)
				end := m.pureEnd()
				m.readers("mine", end-80)
				m.says("upgraded", fmt.Sprintf("[1 %d]", end-80), "acquire", "mine", end)
				m.refused(command, "unupgrade", "mine", end, end-80)
				if m.exact {
					m.refused(command, "share", "mine", end, m.end())
				}
				m.says("allowed again", "1", "unupgrade", "mine", end, end-80)
				if got := m.score("mine"); got != end-80 {
					t.Errorf("%s, want the reader until %d", m.whole(), end-80)
				}
			}
		})
	}
}

// A holder that cannot be read may be another token's.
func TestScripts_LeaveTheHolderThatTheyCannotRead(t *testing.T) {
	for kind, master := range map[string]func(*testing.T) *pureMaster{"real": pureReal, "before 7.0": pureOld} {
		t.Run(kind, func(t *testing.T) {
			m := master(t)
			end := m.pureEnd()
			m.do("SET", "lock", "other", "PXAT", end)
			m.refused("get", "acquire", "mine", end)
			m.refused("get", "release", "mine", "")
			m.refused("get", "release", "mine", end-80, end+80)
			m.refused("get", "write", "delete", "", "", "other", "1")
			m.do("SET", "lock", "7@any")
			m.refused("get", "nextid", 8, 8, "any", 0, 0)
			m.refused("get", "reseed", 9, "any")
			m.refused("get", "deleteid", "any", 0, "")
			m.do("DEL", "lock")
			m.do("HSET", "lock", "s", "R", "a", 1, "o", "mine", "e", end)
			m.refused("hmget", "worktry", "mine", 2, 3, end, end, 1000, "", "any")
			m.refused("hmget", "workread", "any")
			m.refused("hmget", "workend", "mine", 1, "D", end, 3, 1000)
			m.refused("hmget", "workextend", "mine", 1, end, 1000, "any")
		})
	}
}

// Readers and permits without an expiry would never end, and readers that outlast their key are
// not taken for a lock.
func TestScripts_LeaveNothingWithoutItsExpiry(t *testing.T) {
	for kind, master := range map[string]func(*testing.T) *pureMaster{"real": pureReal, "before 7.0": pureOld} {
		t.Run(kind, func(t *testing.T) {
			m := master(t)
			end := m.pureEnd()
			m.refused("pexpireat", "share", "mine", end, "")
			m.refused("pexpireat", "permit", "mine", end, 2, 1, "")
			m.refused("pexpireat", "multi", "mine", end, "1")
			m.readers("mine", end-80)
			m.refused("pexpireat", "extend", "mine", end)
			m.refused("pexpireat", "multiextend", "mine", end)
		})
	}
}

// A full master lets a writer step down, as it lets it be released.
func TestScripts_AFullMasterMakesTheWriterAReader(t *testing.T) {
	m := pureReal(t)
	end := m.pureEnd()
	m.readers("mine", end-80)
	m.says("upgraded", fmt.Sprintf("[1 %d]", end-80), "acquire", "mine", end)
	m.do("CONFIG", "SET", "maxmemory", 1)
	if got := m.do("SET", "other", "x"); !strings.HasPrefix(fmt.Sprint(got), "-OOM") {
		t.Fatalf("a full master answered %v", got)
	}
	m.says("on a full master", "1", "unupgrade", "mine", end, end-80)
}

func TestNoteScript_KeepsTheNotesThatItCannotReplace(t *testing.T) {
	m := pureReal(t)
	end := m.pureEnd()
	m.do("EVAL", "for i = 1, 1024 do redis.call('HSET', KEYS[1], i, 'x') end", 1, "lock")
	m.do("PEXPIREAT", "lock", end)
	m.refused("hset", "note", "mine", "for people", end)
	m.says("allowed again", "1", "note", "mine", "for people", end)
	if n := m.do("HLEN", "lock"); n != int64(1) {
		t.Errorf("%v notes, want them to begin anew with one", n)
	}
}
