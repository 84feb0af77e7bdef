package commands_test

import (
	"fmt"
	"strings"
	"testing"

	"redlockd/commands"
	"redlockd/commands/access"
	"redlockd/pool"
	"redlockd/redlock"
)

// forwarded notes what would go to the masters.
type forwarded struct {
	asked []string
	reply pool.Reply
}

func (f *forwarded) Forward(_ *redlock.Batch, r redlock.ForwardRequest, done redlock.ForwardDone) {
	if r.Words[0] == "EVAL" {
		r.Words = append([]string{"EVAL", firstLine(r.Words[1])}, r.Words[2:]...)
	}
	f.asked = append(f.asked, fmt.Sprintf("%d %q %v", r.DB, r.Words, r.Names))
	done(f.reply, nil)
}

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
	f := &forwarded{reply: pool.Reply{Kind: pool.ReplyInt, Int: 3}}
	c, one := dropinConversation(t, commands.Deps{CompatTest: f})
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
		f.asked = nil
		if reply := c.say(words); reply != ":3" || len(f.asked) != 1 || f.asked[0] != want {
			t.Errorf("%s: %s, forwarded %q, want %s", words, reply, f.asked, want)
		}
	}
	f.asked = nil
	// What is a lock stays one, also without an expiry and for less than the shortest lease.
	for _, words := range []string{"SET k value-1 NX PX 20000", "SET k value-1 NX", "SET k value-1 NX PX 1"} {
		if reply := c.say(words); reply != "+OK" {
			t.Errorf("%s: %s", words, reply)
		}
	}
	c.say("DEL k")
	if len(f.asked) != 0 || len(one.written) != 1 {
		t.Errorf("forwarded %q, written %v", f.asked, one.written)
	}
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
	f := &forwarded{}
	c, _ := dropinConversation(t, commands.Deps{CompatTest: f, Users: users})
	c.say("AUTH worker secret")
	for _, words := range []string{"FLUSHALL", "KEYS x", "SET k value-1", "PEXPIRE k 1", "LLEN k"} {
		if reply := c.say(words); !strings.HasPrefix(reply, "-NOPERM") {
			t.Errorf("%s: %s", words, reply)
		}
	}
	if len(f.asked) != 0 {
		t.Errorf("forwarded %q", f.asked)
	}
}
