package commands_test

import (
	"slices"
	"strings"
	"testing"

	"redlockd/commands"
	"redlockd/commands/access"
	"redlockd/pool"
	"redlockd/redlock"
)

func firstLine(text string) string { line, _, _ := strings.Cut(text, "\n"); return line }

func TestCompat_WhatIsNoLockIsUnknownUnlessItIsOn(t *testing.T) {
	c, _ := dropinConversation(t, commands.Deps{})
	for _, name := range []string{"FLUSHDB", "FLUSHALL", "KEYS x", "SADD k x", "LLEN k", "PERSIST k"} {
		if reply := c.say(name); !strings.Contains(reply, "unknown command") {
			t.Errorf("%s: %s", name, reply)
		}
	}
	if reply := c.say("SET k value-1"); !strings.Contains(reply, "not a database") {
		t.Error(reply)
	}
	if reply := c.say("INFO server"); strings.Contains(reply, "compat-test") {
		t.Error(reply)
	}
}

func TestCompat_ForwardsWhatIsNoLock(t *testing.T) {
	c, one := dropinConversation(t, commands.Deps{CompatTest: true, IDs: &fakeIDs{}})
	one.reply = pool.Reply{Kind: pool.ReplyInt, Int: 3}
	c.grantsAll()
	for words, want := range map[string]string{
		"SET k value-1":             `0 ["SET" "k" "value-1"] [1]`,
		"SET k value-1 PX 99999999": `0 ["SET" "k" "value-1" "PX" "99999999"] [1]`,
		"PEXPIRE k 1":               `0 ["PEXPIRE" "k" "1"] [1]`,
		"EXPIRE k 100000000":        `0 ["EXPIRE" "k" "100000000"] [1]`,
		"SADD k a b":                `0 ["SADD" "k" "a" "b"] [1]`,
		"LLEN k":                    `0 ["LLEN" "k"] [1]`,
		"KEYS lock:*":               `0 ["EVAL" "local prefix, found = ARGV[1], {}" "0" "" "lock:*"] [3 4]`,
		"FLUSHDB":                   `0 ["EVAL" "local prefix = ARGV[1]" "0" "" "0" "0" "0"] [3]`,
		"FLUSHALL ASYNC":            `0 ["EVAL" "local prefix = ARGV[1]" "0" "" "0" "15" "0"] [3]`,
	} {
		one.forwarded = nil
		if reply := c.say(words); reply != ":3" || len(one.forwarded) != 1 || one.forwarded[0] != want {
			t.Errorf("%s: %s, forwarded %q, want %s", words, reply, one.forwarded, want)
		}
	}
	one.forwarded = nil
	// What is a lock stays one, also without an expiry and for less than the shortest lease.
	for _, words := range []string{"SET k value-1 NX PX 20000", "SET k value-1 NX", "SET k value-1 NX PX 1"} {
		if reply := c.say(words); reply != "+OK" {
			t.Errorf("%s: %s", words, reply)
		}
	}
	c.say("DEL k")
	if len(one.forwarded) != 0 || len(one.written) != 1 {
		t.Errorf("forwarded %q, written %v", one.forwarded, one.written)
	}
	one.failure, one.reply.Int = redlock.ErrWrongType, 1 // what SADD made
	if reply := c.say("DEL k l"); reply != ":2" || !slices.Equal(one.forwarded, []string{`0 ["DEL" "k"] [1]`, `0 ["DEL" "l"] [1]`}) {
		t.Errorf("%s, forwarded %q", reply, one.forwarded)
	}
	one.failure = nil
	if reply := c.say("SET redlockd:seal x"); !strings.Contains(reply, "reserved") {
		t.Error(reply)
	}
	if reply := c.say("INFO server"); !strings.Contains(reply, "redlockd_warning:compat-test is on") {
		t.Error(reply)
	}
}

func TestCompat_NeedsTheCategoryForceWhereThereAreUsers(t *testing.T) {
	users, err := access.NewUsers([]access.User{{Name: "worker", Passwords: [][32]byte{digest("secret")}, Keys: []string{"*"}, Commands: []string{"lock", "read"}}})
	if err != nil {
		t.Fatal(err)
	}
	c, one := dropinConversation(t, commands.Deps{CompatTest: true, Users: users})
	c.say("AUTH worker secret")
	for _, words := range []string{"FLUSHALL", "KEYS x", "SET k value-1", "PEXPIRE k 1", "LLEN k"} {
		if reply := c.say(words); !strings.HasPrefix(reply, "-NOPERM") {
			t.Errorf("%s: %s", words, reply)
		}
	}
	if len(one.forwarded) != 0 {
		t.Errorf("forwarded %q", one.forwarded)
	}
}
