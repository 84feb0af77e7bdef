package commands_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"redlockd/commands"
	"redlockd/commands/access"
	"redlockd/redlock"
)

func transactions(t *testing.T) (*conversation, *oneRedis) {
	c, o := dropinConversation(t, commands.Deps{})
	o.views["k"] = redlock.View{Kind: "string", Value: "v", Left: time.Second}
	c.locks.unlock = func(r redlock.UnlockRequest) (bool, error) { return r.Token == "v", nil }
	c.locks.extend = func(r redlock.ExtendRequest) (redlock.Grant, error) {
		return grant(t, r.Token, 0, r.TTL, &stillClock{}), nil
	}
	return c, o
}

func TestEXEC_ReleasesTheLockWithTheValueThatGETHasSeen(t *testing.T) {
	c, _ := transactions(t)
	c.transcript(`
		> WATCH k
		< +OK
		> GET k
		< "v"
		> MULTI
		< +OK
		> DEL k
		< +QUEUED
		> EXEC
		< [:1]
		> WATCH k
		< +OK
		> GET k
		< "v"
		> MULTI
		< +OK
		> PEXPIRE k 20000
		< +QUEUED
		> EXEC
		< [:1]
	`)
	if want := []redlock.UnlockRequest{{Key: "k", Token: "v"}}; !slices.Equal(c.locks.unlocked, want) {
		t.Errorf("%+v", c.locks.unlocked)
	}
	if len(c.locks.extended) != 1 || c.locks.extended[0].TTL != 20*time.Second || c.locks.extended[0].Token != "v" {
		t.Errorf("%+v", c.locks.extended)
	}
}

func TestEXEC_AnswersNilIfTheLockHasGone(t *testing.T) {
	c, _ := transactions(t)
	c.say("WATCH k")
	c.say("GET k")
	c.locks.unlock = func(redlock.UnlockRequest) (bool, error) { return false, nil }
	c.say("MULTI")
	c.say("DEL k")
	if got := c.words("EXEC"); got != "?9" { // the nil of a list
		t.Error(got)
	}
}

func TestMULTI_ServesNothingElse(t *testing.T) {
	const refused = "-ERR redlockd is not a database: a transaction is"
	for name, story := range map[string][]string{
		"another command":    {"WATCH k", "GET k", "MULTI", "DLOCK k 1000 " + refused, "EXEC -EXECABORT"},
		"two commands":       {"WATCH k", "GET k", "MULTI", "DEL k", "DEL k " + refused, "EXEC -EXECABORT"},
		"a read, a change":   {"MULTI", "GET k", "DEL k " + refused, "EXEC -EXECABORT"},
		"an unknown command": {"WATCH k", "GET k", "MULTI", "FOO k -ERR unknown command", "DEL k", "EXEC -EXECABORT"},
		"too few words":      {"WATCH k", "GET k", "MULTI", "PEXPIRE k -ERR wrong number", "DEL k", "EXEC -EXECABORT"},
		"unwatched inside":   {"WATCH k", "GET k", "MULTI", "DEL k", "UNWATCH " + refused, "EXEC -EXECABORT"},
		"nested":             {"MULTI", "MULTI -ERR MULTI calls can not be nested"},
		"a watch inside":     {"MULTI", "WATCH k -ERR WATCH inside MULTI is not allowed"},
		"no beginning":       {"EXEC -ERR EXEC without MULTI", "DISCARD -ERR DISCARD without MULTI"},
		"a new connection":   {"WATCH k", "GET k", "MULTI", "RESET", "EXEC -ERR EXEC without MULTI"},
		"PSETEX by itself":   {"PSETEX k 9000 v -ERR redlockd is not a database: SETEX and PSETEX"},
	} {
		c, o := transactions(t)
		for _, line := range story {
			words, want, fails := strings.Cut(line, " -")
			if got := c.say(words); fails != strings.HasPrefix(got, "-") || fails && !strings.HasPrefix(got, "-"+want) {
				t.Errorf("%s: %s: %s", name, words, got)
			}
		}
		if len(c.locks.unlocked)+len(o.written)+len(c.locks.locked) > 0 {
			t.Errorf("%s: something was done on the masters", name)
		}
	}
}

// One command is as atomic in a transaction as it is alone, so what pipelines send is served.
func TestMULTI_DoesTheOnlyCommand(t *testing.T) {
	c, o := transactions(t)
	c.grantsAll()
	o.wrote = true
	for words, want := range map[string]string{
		"SET f token-1 NX PX 9000": "[+OK]", "SETNX f token-1": "[-ERR a lock without an expiry", "DEL k": "[:1]", "EXISTS k f": "[:1]",
		"SET f token-1": "[-ERR redlockd is not a database", "PEXPIRE k 5": "[:1]", "GET k": `["v"]`, "PSETEX k 9000 v": "[-ERR redlockd is not a database: SETEX",
	} {
		c.transcript("> MULTI\n< +OK\n> " + words + "\n< +QUEUED")
		if got := c.say("EXEC"); !strings.HasPrefix(got, strings.TrimSuffix(want, "]")) {
			t.Errorf("%s: %s, want %s", words, got, want)
		}
	}
}

// The value is a secret of the holder: a client that has not read it needs the right to take the lock
// from any holder.
func TestEXEC_OfALockThatWasNotReadNeedsForce(t *testing.T) {
	c, o := transactions(t)
	users, err := access.NewUsers([]access.User{{Name: "plain", Passwords: [][32]byte{digest("secret")}, Keys: []string{"*"}, Commands: []string{"lock"}}})
	if err != nil {
		t.Fatal(err)
	}
	c.serve(commands.Deps{Locks: c.locks, RedisCompat: o, Users: users})
	c.say("AUTH plain secret")
	for _, words := range []string{"DEL k", "PEXPIRE k 20000", "UNLINK k"} {
		c.say("WATCH k")
		c.say("MULTI")
		c.say(words)
		if got := c.say("EXEC"); !strings.HasPrefix(got, "-NOPERM") && !strings.HasPrefix(got, "[-NOPERM") {
			t.Errorf("%s: %s", words, got)
		}
	}
	if len(c.locks.unlocked)+len(o.written)+len(c.locks.extended) > 0 {
		t.Error("something was done on the masters")
	}
}

func TestEXEC_OfAFreeLockDeletesNothing(t *testing.T) {
	c, _ := transactions(t)
	c.transcript(`
		> WATCH free
		< +OK
		> GET free
		< nil
		> MULTI
		< +OK
		> DEL free
		< +QUEUED
		> EXEC
		< [:0]
		> MULTI
		< +OK
		> EXEC
		< []
	`)
}
