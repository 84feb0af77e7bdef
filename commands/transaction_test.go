package commands_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"redlockd/commands"
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
		"another command":       {"WATCH k", "GET k", "MULTI", "DLOCK k 1000 " + refused, "EXEC -EXECABORT"},
		"two commands":          {"WATCH k", "GET k", "MULTI", "DEL k", "DEL k " + refused, "EXEC -EXECABORT"},
		"an unknown command":    {"WATCH k", "GET k", "MULTI", "FOO k -ERR unknown command", "DEL k", "EXEC -EXECABORT"},
		"too few words":         {"WATCH k", "GET k", "MULTI", "PEXPIRE k -ERR wrong number", "DEL k", "EXEC -EXECABORT"},
		"unwatched inside":      {"WATCH k", "GET k", "MULTI", "DEL k", "UNWATCH " + refused, "EXEC -EXECABORT"},
		"nothing watched":       {"MULTI", "DEL k", "EXEC " + refused},
		"not read":              {"WATCH k", "MULTI", "DEL k", "EXEC " + refused},
		"another key":           {"WATCH k", "GET k", "MULTI", "DEL other", "EXEC " + refused},
		"several keys":          {"WATCH k", "GET k", "MULTI", "DEL k k", "EXEC " + refused},
		"read before the watch": {"GET k", "WATCH k", "MULTI", "DEL k", "EXEC " + refused},
		"unwatched":             {"WATCH k", "GET k", "UNWATCH", "MULTI", "DEL k", "EXEC " + refused},
		"discarded":             {"WATCH k", "GET k", "MULTI", "DISCARD", "MULTI", "DEL k", "EXEC " + refused},
		"nested":                {"MULTI", "MULTI -ERR MULTI calls can not be nested"},
		"a watch inside":        {"MULTI", "WATCH k -ERR WATCH inside MULTI is not allowed"},
		"no beginning":          {"EXEC -ERR EXEC without MULTI", "DISCARD -ERR DISCARD without MULTI"},
		"a new connection":      {"WATCH k", "GET k", "MULTI", "RESET", "EXEC -ERR EXEC without MULTI"},
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
