package commands_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"redlockd/commands"
	"redlockd/commands/access"
	"redlockd/redlock"
)

// What people try first gets an error that says what to do.
func TestErrors_SayWhatToDoInstead(t *testing.T) {
	c, _ := dropinConversation(t, commands.Deps{})
	for words, want := range map[string]string{
		"DLOCK k 30000 PX 100":           "unknown option 'PX'; the time stands before the options and without PX",
		"DLOCK k 30000 EX 30":            "unknown option 'EX'; the time stands before the options",
		"DLOCK k 30000 NX":               "unknown option 'NX'; it is not needed",
		"DLOCK k 30.0":                   "times are whole milliseconds: 30, not '30.0'",
		"DLOCK k 30.5":                   "ttl '30.5' is not an integer or out of range, allowed are 10 to 60000 ms; syntax",
		"DEXTEND k 30000 token-0001":     "if it is the ttl, the token stands before it",
		"DMLOCK a b 30000":               "the ttl stands first",
		"DUNLOCK 3f2a8c6e-token k":       "invalid token: 1 byte,",
		"DUNLOCK k b'c0ffee-c0ffee'":     "Python",
		`DEXTEND k "b'c0ffee-c0ff'" 100`: "token.decode()",
		"LOCKS":                          "did you mean DLOCKS cursor",
		"DLIST":                          "did you mean DLOCKS cursor",
		"DHELP":                          "COMMAND DOCS",
		"INCR n":                         "did you mean DNEXTID name",
		"HGETALL h":                      "redlockd is not a database",
		"GETSET k v":                     "redlockd is not a database",
		"XADD s * a b":                   "redlockd is not a database",
		"FLUSHALL":                       "DFORCE key",
		"SENTINEL masters":               "without Sentinel",
		"CONFIG SET max-ttl 120s":        "by a restart",
		"SUBSCRIBE __keyspace@0__:k":     "no keyspace events",
		"PSUBSCRIBE __key*__:*":          "no keyspace events",
		"PSUBSCRIBE __keyevent@0__:del":  "SUBSCRIBE",
		"PSUBSCRIBE __*":                 "no keyspace events",
		"PSUBSCRIBE _?keyspace@*":        "no keyspace events",
		"PSUBSCRIBE *keyspace@0__:k":     "no keyspace events",
	} {
		if got := c.say(words); !strings.HasPrefix(got, "-ERR ") || !strings.Contains(got, want) && want != "SUBSCRIBE" {
			t.Errorf("%s: %s, want %s", words, got, want)
		}
	}
	for _, words := range []string{"SUBSCRIBE dlock:__keyspace@0__:k", "PSUBSCRIBE *", "PSUBSCRIBE dlock:*", "PSUBSCRIBE *:expired", "PSUBSCRIBE _registry-channel:*"} {
		if got := c.say(words); strings.HasPrefix(got, "-") {
			t.Errorf("%s: %s", words, got)
		}
	}
	if got := c.say("HGETALL h"); !strings.HasPrefix(got, "-ERR unknown command 'HGETALL', with args beginning with: 'h' ") {
		t.Errorf("clients match on the text of Redis: %s", got)
	}
}

// A cycle goes over the keys of others, and names only those that the user may use.
func TestDEADLOCK_NamesOnlyKeysThatTheUserMayUse(t *testing.T) {
	users, err := access.NewUsers([]access.User{{Name: "a", Passwords: [][32]byte{digest("pw")}, Keys: []string{"a:*"}, Commands: []string{"lock"}}})
	if err != nil {
		t.Fatal(err)
	}
	c, o := dropinConversation(t, commands.Deps{})
	c.serve(commands.Deps{Locks: c.locks, RedisCompat: o, Users: users})
	c.say("AUTH a pw")
	for _, keys := range [][]redlock.Key{{"a:1", "b:secret", "a:2", "b:other"}, {"a:1"}} {
		c.locks.lock = func(redlock.LockRequest) (redlock.Grant, error) {
			return redlock.Grant{}, &redlock.Deadlock{Keys: keys}
		}
		got := c.say("DLOCK a:1 1000")
		if !strings.HasPrefix(got, "-DEADLOCK ") || strings.Contains(got, "b:") || !strings.Contains(got, "'a:1'") {
			t.Error(got)
		}
		if len(keys) > 1 && !strings.Contains(got, "2 keys of other users") || len(keys) == 1 && !strings.Contains(got, "holds 'a:1' itself") {
			t.Error(got)
		}
	}
}

func TestForced_LeavesOneBoundedLine(t *testing.T) {
	var log bytes.Buffer
	c, o := dropinConversation(t, commands.Deps{})
	c.serve(commands.Deps{Locks: c.locks, RedisCompat: o, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	lines := func() int { return strings.Count(log.String(), "lock changed regardless of its holder") }
	o.views["k"] = redlock.View{Kind: "string", Value: "v", Left: time.Minute}
	c.say("DEL k")
	if lines() != 0 {
		t.Errorf("a DEL of nothing is logged: %s", log.String())
	}
	o.wrote = true
	for i, words := range []string{"DEL k", "UNLINK k", "PEXPIRE k 5000", "SET k w XX PX 5000", "SET k w PX 1", "DELEX k IFNE w", "PEXPIRE k 5 LT"} {
		if got := c.say(words); lines() != i+1 || !strings.Contains(log.String(), "command="+strings.Fields(words)[0]) {
			t.Errorf("%s: %s, and %d lines", words, got, lines())
		}
	}
	if c.say("SET k w PX 5000 IFEQ v"); lines() != 7 {
		t.Error("a change by the holder's value is logged")
	}
	if got := c.say("SET k w PX 5000 IFNE x"); lines() != 8 {
		t.Errorf("SET IFNE: %s, and %d lines", got, lines())
	}
	if got := c.eval("EVAL", "return redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2])", "1", "k", "other", "5000"); lines() != 9 || !strings.Contains(log.String(), "command=EVAL") {
		t.Errorf("a script that overwrites: %s, and %d lines", got, lines())
	}
	for range 500 {
		c.say("DEL " + strings.Repeat("k", 512))
	}
	if n := lines(); n > 120 || strings.Contains(log.String(), strings.Repeat("k", 65)) {
		t.Errorf("%d lines", n)
	}
}
