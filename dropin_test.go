package main

// dropin_test.go: code written for one Redis, typed at daemons on real masters.

import (
	"context"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"redlockd/pool/faulty"
)

// types sends lines and wants the first line of each reply, and the text of
// those that have one.
func (c *client) types(t *testing.T, transcript ...string) {
	t.Helper()
	for i := 0; i < len(transcript); i += 2 {
		got := c.ask(t, "%s", transcript[i])
		if got[0] == '$' && got != "$-1" {
			got += "|" + c.line(t)
		}
		if got != transcript[i+1] {
			t.Errorf("%s: %s, want %s", transcript[i], got, transcript[i+1])
		}
	}
}

// ready waits until the masters vote.
func (c *client) ready(t *testing.T) {
	t.Helper()
	c.types(t, "DUNLOCK ready "+c.lock(t, "ready"), ":1")
}

func TestDropIn_WhatOneDaemonGrantsAnotherKnows(t *testing.T) {
	servers := faulty.StartGroup(t, 5)
	bootstrapGroup(t, servers)
	one, two := dial(t, serveHere(t, addresses(servers))), dial(t, serveHere(t, addresses(servers)))
	one.ready(t)
	two.ready(t)
	one.types(t, "SET k value-1 NX PX 60000", "+OK")
	two.types(t,
		"SET k value-2 NX PX 60000", "$-1",
		"set k value-1 px 60000 nx", "$-1",
		"DLOCK k 60000", "$-1",
		"GET k", "$7|value-1",
		"EXISTS k", ":1",
		"GET redlockd:fence:k", "$-1", // granted elsewhere
		"WATCH k", "+OK", "GET k", "$7|value-1", "MULTI", "+OK", "DEL k", "+QUEUED")
	one.types(t, "SET k value-1 PX 50000 IFEQ value-1", "+OK", "DELEX k IFEQ value-1", ":1", "SET k value-3 NX EX 60", "+OK")
	two.types(t, "EXEC", "*-1", "DELIFEQ k value-3", ":1", "PTTL k", ":-2")

	token := one.lock(t, "k")
	two.types(t, "SET k value-1 NX PX 60000", "$-1", "DELEX k IFEQ "+token, ":1")
	// A client of the masters themselves.
	for _, s := range servers[:3] {
		if _, err := s.Do("SET", "s", "a stranger's", "NX", "PX", 60000); err != nil {
			t.Fatal(err)
		}
	}
	two.types(t, "SET s value-1 NX PX 60000", "$-1", "GET s", "$12|a stranger's")

	for _, s := range servers[:2] {
		s.Kill()
	}
	two.types(t, "SET l value-1 NX PX 60000", "+OK", "DEL l", ":1")
	servers[2].Kill()
	for _, words := range []string{"SET l value-1 NX PX 60000", "GET l", "DEL l", "DELEX l IFEQ value-1"} {
		if got := two.ask(t, "%s", words); !strings.HasPrefix(got, "-NOQUORUM ") {
			t.Errorf("%s with two masters of five: %s", words, got)
		}
	}
}

func TestDropIn_WhoWaitsForALockOfPythonIsWokenByItsRelease(t *testing.T) {
	address := serveHere(t, nil, "--embedded", "3")
	one, two := dial(t, address), dial(t, address)
	one.ready(t)
	one.types(t, "SET lock:jobs value-1 NX PX 60000", "+OK")
	two.send(t, "BLPOP lock-signal:jobs 0")
	one.types(t, "DELEX lock:jobs IFEQ value-1", ":1")
	if got := two.lines(t, 5); !slices.Equal(got, []string{"*2", "$16", "lock-signal:jobs", "$1", "1"}) {
		t.Errorf("%q", got)
	}
	one.types(t, "SET lock:jobs value-1 NX PX 60000", "+OK")
	two.types(t, "BLPOP lock-signal:jobs 0.05", "*-1")
}

func TestDropIn_AScriptClassThatIsNoneIsRefused(t *testing.T) {
	err := run(context.Background(), []string{"--embedded", "3", "--listen", "127.0.0.1:0", "--script-class", "abc=release"}, nil, io.Discard, t.Output())
	if err == nil || !strings.Contains(err.Error(), "script-class") || !strings.Contains(err.Error(), "40 hex digits") {
		t.Errorf("%v", err)
	}
}

func TestDropIn_AScriptThatIsPinnedRuns(t *testing.T) {
	const text = "redis.call('append', KEYS[1], '') local v = redis.call('get', KEYS[1]) if v == ARGV[1] then redis.call('del', KEYS[1]) return 'bye' .. #KEYS end return 'who?'"
	one := dial(t, serveHere(t, nil, "--embedded", "3"))
	sha := one.load(t, text)
	if got := one.ask(t, "EVALSHA %s 1 k value-1", sha); !strings.HasPrefix(got, "-ERR script "+sha+" is not a recognised lock script") {
		t.Errorf("without a pin: %s", got)
	}
	two := dial(t, serveHere(t, nil, "--embedded", "3", "--script-class", sha+"=release,token=1,yes=bye1,no=who?"))
	two.load(t, text)
	two.ready(t)
	two.types(t,
		"SET k value-1 NX PX 60000", "+OK",
		"EVALSHA "+sha+" 1 k value-2", "$4|who?",
		"EVALSHA "+sha+" 1 k value-1", "$4|bye1",
		"EXISTS k", ":0")
}

// load sends a script.
func (c *client) load(t *testing.T, text string) (sha string) {
	t.Helper()
	c.send(t, "SCRIPT LOAD %q", text)
	return c.lines(t, 2)[1]
}

func TestDropIn_TestSuitesMayWriteAndEmptyWhatTheyLike(t *testing.T) {
	for name, address := range map[string]string{
		"embedded": serveHere(t, nil, "--embedded", "3", "--compat-test"),
		"real":     serveHere(t, addresses(faulty.StartGroup(t, 3)), "--bootstrap", "--compat-test", "--key-prefix", "locks:"),
	} {
		t.Run(name, func(t *testing.T) {
			one := dial(t, address)
			one.ready(t)
			one.types(t,
				"SET k stolen", "+OK",
				"SET k value-1 NX", "$-1",
				"GET k", "$6|stolen",
				"PEXPIRE k 100000", ":1",
				"PERSIST k", ":1",
				"PTTL k", ":-1",
				"RPUSH l a b", ":2",
				"LLEN l", ":2",
				"SELECT 3", "+OK",
				"SET other value-2 NX", "+OK",
				"FLUSHDB", "+OK",
				"GET other", "$-1",
				"SELECT 0", "+OK",
				"GET k", "$6|stolen",
				"KEYS [l]", "*1",
			)
			one.lines(t, 2)
			one.types(t,
				"FLUSHALL", "+OK",
				"KEYS *", "*0",
				"SET k value-1 NX PX 60000", "+OK", // the masters still vote
				"DELEX k IFEQ value-1", ":1")
		})
	}
}

// Who may only lock takes no lock from its holder, in no words.
func TestDropIn_TheCategoryLockTakesNoLockFromItsHolder(t *testing.T) {
	servers := faulty.StartGroup(t, 3)
	bootstrapGroup(t, servers)
	path := filepath.Join(t.TempDir(), "users.toml")
	usersFile(t, path, "anna", "bert")
	address := serveHere(t, addresses(servers), "--users", path, "--master-timeout", "2s")
	anna, bert := dial(t, address), dial(t, address)
	anna.types(t, "AUTH anna anna", "+OK")
	bert.types(t, "AUTH bert bert", "+OK")
	token := anna.lock(t, "k")
	bert.types(t, "DUNLOCK lock:own "+bert.lock(t, "lock:own"), ":1", "SET lock:own berts-value NX PX 30000", "+OK")
	const wakes = `\n    if redis.call(\"get\", KEYS[1]) ~= ARGV[1] then\n        return 1\n    else\n        redis.call(\"del\", KEYS[2])\n` +
		`        redis.call(\"lpush\", KEYS[2], 1)\n        redis.call(\"pexpire\", KEYS[2], ARGV[2])\n        redis.call(\"del\", KEYS[1])\n        return 0\n    end\n`
	for _, words := range []string{
		`EVAL "return redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2])" 1 k berts-value 30000`,
		`EVAL "return redis.call('del', KEYS[1])" 1 k`,
		`EVAL "` + wakes + `" 2 lock:own k berts-value 1000`,
		"DEL k", "UNLINK k", "PEXPIRE k 10", "SET k berts-value XX PX 30000", "DFORCE k",
	} {
		got := bert.ask(t, "%s", words)
		if !strings.HasPrefix(got, "-NOPERM ") || strings.Contains(words, wakes) != strings.Contains(got, "'lock-signal:' of its lock") {
			t.Errorf("%s: %s", words, got)
		}
	}
	if got := bert.ask(t, "SET k berts-value PX 30000"); !strings.HasPrefix(got, "-ERR redlockd is not a database") {
		t.Error(got)
	}
	if got := held(t, servers, "k"); strings.Join(got, " ") != strings.Join([]string{token, token, token}, " ") {
		t.Errorf("the masters have %q", got)
	}
}
