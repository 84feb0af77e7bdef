package daemon

// dropin_test.go: code written for one Redis, typed at daemons on real masters.

import (
	"context"
	"fmt"
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

func TestDropIn_WhatOneDaemonGrantsAnotherSees(t *testing.T) {
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

func TestDropIn_AWaiterForALockOfPythonIsWokenByItsRelease(t *testing.T) {
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
	err := run(context.Background(), []string{"--embedded", "3", "--listen", "127.0.0.1:0", "--script-class", "abc=release"}, nil, nil, io.Discard, t.Output())
	if err == nil || !strings.Contains(err.Error(), "script-class") || !strings.Contains(err.Error(), "40 hex digits") {
		t.Errorf("%v", err)
	}
}

// A script with an endless loop, wherever it stands and whatever leads to it, reaches
// no master: one that runs it answers nothing any more, and behind a write it cannot
// even be stopped.
func TestDropIn_AnEndlessScriptReachesNoMaster(t *testing.T) {
	servers := faulty.StartGroup(t, 3)
	bootstrapGroup(t, servers)
	one := dial(t, serveHere(t, addresses(servers), "--master-timeout", "2s"))
	one.ready(t)
	const token = "a-token-of-37-bytes-that-no-probe-has"
	const renews = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) else return 0 end"
	one.types(t, "SET k "+token+" NX PX 30000", "+OK")
	for _, attack := range []string{
		"if #ARGV[1] == 37 then while true do end end " + renews,
		"if #ARGV[1] == 37 then redis.call('pexpire', KEYS[1], 30000) while true do end end " + renews,
		"if ARGV[1] == '" + token + "' then repeat until false end " + renews,
		"if redis.call('get', KEYS[1]) == ARGV[1] then for i = 1, 1e18 do end end return 0",
		"local function f() return f() end if #ARGV[1] == 37 then f() end " + renews,
		"-- x\rwhile true do end\n" + renews,
	} {
		sha := one.load(t, attack)
		for _, value := range []string{"harmless", token} { // what comes of the first call is remembered
			got := one.ask(t, "EVALSHA %s 1 k %s 20000", sha, value)
			if !strings.HasPrefix(got, "-ERR script "+sha+" is not a recognised lock script") || !strings.Contains(got, "--script-class "+sha+"=") {
				t.Errorf("%s: %s", attack, got)
			}
		}
		for i, s := range servers {
			if seen, err := s.Do("SCRIPT", "EXISTS", sha); err != nil || !slices.Equal(seen.([]any), []any{int64(0)}) {
				t.Errorf("%s: master %d has it: %v, %v", attack, i, seen, err)
			}
		}
	}
	one.types(t, "DELEX k IFEQ "+token, ":1", "SET l value-1 NX PX 30000", "+OK")
}

// The scripts of redlock-universal: several keys with a token each, as acquireBatch takes
// them, and an extension that wants a least time left, as using() sends it. Both answer
// with lists.
func TestDropIn_SeveralTokensAndALeastTimeLeft(t *testing.T) {
	servers := faulty.StartGroup(t, 3)
	one := dial(t, serveHere(t, addresses(servers), "--bootstrap", "--master-timeout", "2s", "--key-prefix", "locks:"))
	one.ready(t)
	batch := one.load(t, "for i = 1, #KEYS do if redis.call('EXISTS', KEYS[i]) == 1 then return {0, i, KEYS[i]} end end for i = 1, #KEYS do redis.call('SET', KEYS[i], ARGV[i], 'PX', tonumber(ARGV[#ARGV])) end return {1, #KEYS}")
	extend := one.load(t, "local left = redis.call('PTTL', KEYS[1]) if left == -2 then return {-1, -2} end if left < tonumber(ARGV[2]) then return {0, left} end if redis.call('GET', KEYS[1]) ~= ARGV[1] then return {-1, left} end redis.call('PEXPIRE', KEYS[1], tonumber(ARGV[3])) return {1, left}")
	reply := func(want int, line string) string {
		first := one.ask(t, "%s", line)
		if first[0] != '*' {
			return first
		}
		return first + " " + strings.Join(one.lines(t, want-1), " ")
	}
	if got := reply(3, "EVALSHA "+batch+" 3 a b c token-of-a token-of-b token-of-c 30000"); got != "*2 :1 :3" {
		t.Fatal(got)
	}
	if got := reply(5, "EVALSHA "+batch+" 2 d b token-of-d token-of-e 30000"); got != "*3 :0 :2 $1 b" {
		t.Error(got)
	}
	one.types(t, "GET d", "$-1", "GET b", "$10|token-of-b", "DELEX b IFEQ token-of-a", ":0")
	for _, c := range []struct{ token, least, want string }{
		{"token-of-b", "2000", "*2 :1 :"}, {"token-of-a", "2000", "*2 :-1 :"}, {"token-of-b", "50000", "*2 :0 :"},
	} {
		if got := reply(3, "EVALSHA "+extend+" 1 b "+c.token+" "+c.least+" 40000"); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s, at least %s: %s, want %s", c.token, c.least, got, c.want)
		}
	}
	for _, key := range []string{"a", "b", "c"} {
		one.types(t, "DELEX "+key+" IFEQ token-of-"+key, ":1")
	}
	if got := reply(3, "EVALSHA "+extend+" 1 b token-of-b 2000 40000"); got != "*2 :-1 :-2" {
		t.Error(got)
	}
	if got := reply(3, "EVALSHA "+batch+" 2 a b token-of-x token-of-y 30000"); got != "*2 :1 :2" {
		t.Error(got)
	}
}

// The commands of Redis 8.4 for locks. Where the referee, a redis-server of the system, has a
// command with the same meaning, it gives the answer that is expected.
func TestDropIn_TheComparisonsOfRedis84(t *testing.T) {
	servers, referee := faulty.StartGroup(t, 3), faulty.StartGroup(t, 1)[0]
	one := dial(t, serveHere(t, addresses(servers), "--bootstrap", "--master-timeout", "2s", "--key-prefix", "locks:"))
	one.ready(t)
	const digest = "9555e8555c62dcfd" // of hello
	one.types(t,
		"DIGEST k", "$-1",
		"SET k hello IFDEQ "+digest+" PX 60000", "$-1",
		"SET k hello IFNE other PX 60000", "+OK", // free: it is taken
		"DIGEST k", "$16|"+digest,
		"SET k other IFNE hello PX 60000", "$-1",
		"SET k other IFDNE "+digest+" PX 60000", "$-1",
		"GET k", "$5|hello",
		"SET k hello IFDEQ "+digest+" PX 50000", "+OK", // a longer lease
		"SET k other IFDEQ "+digest+" PX 60000", "+OK",
		"SET k hello IFNE hello PX 60000", "+OK",
		"DELEX k IFNE hello", ":0",
		"DELEX k IFDNE "+digest, ":0",
		"DELEX k IFDEQ 0000000000000000", ":0",
		"DELEX k IFDEQ "+strings.ToUpper(digest), ":1",
		"SET k hello NX PX 60000", "+OK",
		"DELEX k IFDNE 0000000000000000", ":1",
		"SET k hello NX PX 60000", "+OK",
		"DELEX k", ":1",
		"DELEX k", ":0",
		"DELEX k IFNE hello", ":0",
		"EXISTS k", ":0")
	one.types(t,
		"MSETEX 3 a token-of-a b token-of-b c token-of-c NX PX 60000", ":1",
		"MSETEX 2 d token-of-d b token-of-b NX PX 60000", ":0",
		"GET a", "$10|token-of-a", "GET c", "$10|token-of-c", "EXISTS d", ":0",
		"DELEX b IFEQ token-of-b", ":1",
		"MSETEX 2 d token-of-d b token-of-x NX EX 60", ":1",
		"GET b", "$10|token-of-x",
		"DEL a b c d", ":4")
	// A key that is no lock.
	for _, s := range append(servers, referee) {
		for _, key := range []string{"locks:list", "list"} {
			if _, err := s.Do("RPUSH", key, "x"); err != nil {
				t.Fatal(err)
			}
		}
	}
	const release = "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end"
	for _, words := range [][]string{{"EVAL", release, "1", "list", "v"}, {"GET", "list"}} {
		parts := make([]any, len(words))
		for i, word := range words {
			parts[i] = word
		}
		_, err := referee.Do(parts...)
		if err == nil || !strings.Contains(err.Error(), "WRONGTYPE Operation against a key holding the wrong kind of value") {
			t.Fatalf("the referee: %v", err)
		}
		line := strings.Join(words, " ")
		if words[0] == "EVAL" {
			line = `EVAL "` + release + `" 1 list v`
		}
		if got := one.ask(t, "%s", line); !strings.HasPrefix(got, "-WRONGTYPE Operation against a key holding the wrong kind of value") {
			t.Errorf("%s: %s", words, got)
		}
	}
	for _, words := range []string{"DELIFEQ list v", "SET list v IFEQ v PX 60000", "SET list v IFNE v PX 60000", "SET list v IFDEQ " + digest + " PX 60000", "DIGEST list"} {
		if got := one.ask(t, "%s", words); !strings.HasPrefix(got, "-WRONGTYPE ") {
			t.Errorf("%s: %s", words, got)
		}
	}
	for _, words := range []string{"DELEX list IFEQ v", "DELEX list IFNE v", "DELEX list IFDNE " + digest} {
		one.types(t, words, "-ERR Key should be of string type if conditions are specified")
	}
	one.types(t, "SET list v NX PX 60000", "$-1")
}

// EXPIRE of a library's script counts in seconds, and its copies outlast the lease.
func TestDropIn_TTLIsNeverMoreThanWasRequested(t *testing.T) {
	one := dial(t, serveHere(t, addresses(faulty.StartGroup(t, 3)), "--bootstrap", "--max-ttl", "1h", "--master-timeout", "2400ms"))
	one.ready(t)
	extend := one.load(t, "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('expire', KEYS[1], ARGV[2]) else return 0 end")
	one.types(t, "SET k value-1 NX PX 60000", "+OK", "EVALSHA "+extend+" 1 k value-1 1000", ":1")
	if got := one.ask(t, "TTL k"); len(got) == len(":1000") && got > ":1000" || got < ":1" {
		t.Errorf("TTL is %s after EXPIRE of 1000", got)
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

// A script of two tokens, as redlock-cpp continues a lock with: the new one takes the place of
// the former on a quorum, or nothing changes.
func TestDropIn_AScriptReplacesATokenByAnother(t *testing.T) {
	const text = "if redis.call('get', KEYS[1]) == ARGV[1] then redis.call('unlink', KEYS[1]) end return redis.call('set', KEYS[1], ARGV[2], 'PX', ARGV[3], 'NX')"
	servers := faulty.StartGroup(t, 3)
	one := dial(t, serveHere(t, addresses(servers), "--bootstrap", "--master-timeout", "2s"))
	one.ready(t)
	sha := one.load(t, text)
	one = dial(t, serveHere(t, addresses(servers), "--master-timeout", "2s", "--script-class", sha+"=acquire,former=1,token=2,time=3ms"))
	one.ready(t)
	one.load(t, text)
	one.types(t,
		"EVALSHA "+sha+" 1 k token-1 token-1 60000", "+OK", // free
		"EVALSHA "+sha+" 1 k token-1 token-2 60000", "+OK",
		"GET k", "$7|token-2",
		"EVALSHA "+sha+" 1 k token-1 token-3 60000", "$-1",
		"DELEX k IFEQ token-1", ":0",
		"GET k", "$7|token-2",
		"DELEX k IFEQ token-2", ":1",
		"EXISTS k", ":0")
}

// A pinned script may answer with a list, and take several keys.
func TestDropIn_APinnedScriptMayAnswerWithAListAndTakeSeveralKeys(t *testing.T) {
	const text = "local function held(k) return redis.call('get', k) == ARGV[1] end for _, k in ipairs(KEYS) do if not held(k) then return {-1, k} end end for _, k in ipairs(KEYS) do redis.call('pexpire', k, ARGV[2]) end return {#KEYS, 'renewed'}"
	one := dial(t, serveHere(t, nil, "--embedded", "3"))
	one.ready(t)
	sha := one.load(t, text)
	got := one.ask(t, "EVALSHA %s 2 a b token-of-mine 40000", sha)
	_, line, ok := strings.Cut(got, "--script-class ")
	if !strings.HasPrefix(got, "-ERR script "+sha+" is not a recognised lock script") || !ok {
		t.Fatalf("without a pin: %s", got)
	}
	pin := strings.Replace(line, "<class>", "extend", 1) + ",yes=[2;renewed],no=[-1;lost]"
	two := dial(t, serveHere(t, nil, "--embedded", "3", "--script-class", pin))
	two.ready(t)
	two.types(t, "SET a token-of-mine NX PX 20000", "+OK", "SET b token-of-mine NX PX 20000", "+OK")
	for token, want := range map[string]string{"token-of-mine": `[:2 "renewed"]`, "another-token": `[:-1 "lost"]`} {
		if got := two.reply(t, "EVALSHA "+sha+" 2 a b "+token+" 40000"); got != want {
			t.Errorf("%s: %s, want %s", token, got, want)
		}
	}
	if left := two.ask(t, "PTTL a"); left < ":30000" || len(left) != len(":30000") {
		t.Errorf("PTTL is %s", left)
	}
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
				"SADD s a b", ":2",
				"DEL k l s none", ":3",
				"SET k stolen", "+OK",
				"PERSIST k", ":0",
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

// A user who may only lock takes no lock from its holder, with no command.
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
	everywhere := strings.Join([]string{token, token, token}, " ")
	holding := func() string { return strings.Join(held(t, servers, "k"), " ") }
	eventually(t, "all masters have the lock", func() bool { return holding() == everywhere }, holding)
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
		if signals := strings.Contains(words, wakes); !strings.HasPrefix(got, "-NOPERM ") && !signals || signals != strings.Contains(got, "'lock-signal:' of its lock") {
			t.Errorf("%s: %s", words, got)
		}
	}
	if got := bert.ask(t, "SET k berts-value PX 30000"); !strings.HasPrefix(got, "-ERR redlockd is not a database") {
		t.Error(got)
	}
	if got := holding(); got != everywhere {
		t.Errorf("the masters have %q", got)
	}
}

// What Redisson sends for an RLock, by the SHA1 of each script, to two daemons; a master dies meanwhile.
func TestDropIn_RedissonsLevelsAreTheSameThroughEveryDaemon(t *testing.T) {
	servers := faulty.StartGroup(t, 5)
	bootstrapGroup(t, servers)
	first, second := serveHere(t, addresses(servers)), serveHere(t, addresses(servers))
	one, two := dial(t, first), dial(t, second)
	one.ready(t)
	two.ready(t)
	const enter = "EVALSHA 149c5a8bf18676fd99e9e6e24923bd64d9b62f94 1 k 60000 "
	const leave = "EVALSHA 6866459238a13a701d42f4971f12d9f3a50e2442 3 k redisson_lock__channel:{k} latch 0 60000 "
	one.types(t, enter+"uuid-of-a:1", "$-1")
	two.types(t, enter+"uuid-of-a:1", "$-1", enter+"uuid-of-a:2", ":2000",
		"HGET k uuid-of-a:1", "$1|2", "HEXISTS k uuid-of-a:2", ":0", "EXISTS k", ":1", "DLOCK k 60000", "$-1", "SET k v NX PX 60000", "$-1")
	servers[4].Kill()
	waiter := dial(t, second)
	waiter.types(t, "SUBSCRIBE redisson_lock__channel:{k}", "*3")
	waiter.lines(t, 5)
	one.types(t, "EVALSHA 6a3d31570dc6f4b0bd32bcdc8e75667747c6f635 1 k 60000 uuid-of-a:1", "*1")
	one.types(t, leave+"uuid-of-a:1 PUBLISH 1", ":1") // the item of the list before; then the reply of this one
	if got := one.line(t); got != ":0" {
		t.Errorf("one level of two is released: %s", got)
	}
	one.types(t, leave+"uuid-of-a:2 PUBLISH 1", "$-1")
	two.types(t, leave+"uuid-of-a:1 PUBLISH 1", ":1")
	if got := waiter.lines(t, 7); got[0] != "*3" || got[2] != "message" || got[6] != "0" {
		t.Errorf("the waiter received %q", got)
	}
	one.types(t, leave+"uuid-of-a:1 PUBLISH 1", "$-1", enter+"uuid-of-a:2", "$-1",
		"DUNLOCK k uuid-of-a:2 REENTRANT", ":0", "DUNLOCK k uuid-of-a:2 REENTRANT", "$-1")
}

// A lock of Redisson that its owner may not take again, by the SHA1 of its script: the library knows the case by the
// text that it has given, which also stands in the arguments of every other error.
func TestDropIn_RedissonsLockThatIsTakenOnce(t *testing.T) {
	t.Parallel()
	servers := faulty.StartGroup(t, 3)
	bootstrapGroup(t, servers)
	one, two := dial(t, serveHere(t, addresses(servers))), dial(t, serveHere(t, addresses(servers)))
	one.ready(t)
	two.ready(t)
	const enter, leave = "EVALSHA 3daa7be6cf69d9309ad990442e83bf25094f9b22 1 k 60000 %s AGAIN", "EVALSHA 6866459238a13a701d42f4971f12d9f3a50e2442 3 k redisson_lock__channel:{k} latch 0 60000 %s PUBLISH 1"
	for range 2 {
		one.types(t, fmt.Sprintf(enter, "uuid-of-a:1"), "$-1", fmt.Sprintf(enter, "uuid-of-a:1"), "-ERR AGAIN")
		two.types(t, fmt.Sprintf(enter, "uuid-of-a:1"), "-ERR AGAIN", fmt.Sprintf(enter, "uuid-of-a:2"), ":2000", "HGET k uuid-of-a:1", "$1|1")
		two.types(t, fmt.Sprintf(leave, "uuid-of-a:2"), "$-1", fmt.Sprintf(leave, "uuid-of-a:1"), ":1", "EXISTS k", ":0")
	}
}

// A command or a script that compares no token ends a lock for the daemon that granted it, too: its
// client is in no cycle of waits over it, it is counted no more, and its end is published in time.
func TestDropIn_ALockThatIsEndedWithoutItsTokenIsOver(t *testing.T) {
	address := serveHere(t, addresses(faulty.StartGroup(t, 3)), "--bootstrap", "--max-ttl", "10m", "--master-timeout", "1s")
	operator := dial(t, address)
	operator.ready(t)
	for name, end := range map[string]struct{ says, answer, event string }{
		"pexpire":   {"PEXPIRE %s 200", ":1", "expired"},
		"set":       {"SET %s other-value XX PX 600000", "+OK", "forced"},
		"overwrite": {`EVAL "return redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])" 1 %s other-value 600000`, "+OK", "forced"},
		"discard":   {`EVAL "return redis.call('DEL', KEYS[1])" 1 %s`, ":1", "released"},
		"del":       {"DEL %s", ":1", "released"},
	} {
		t.Run(name, func(t *testing.T) {
			x, y := name+":x", name+":y"
			listener, a, b, other := dial(t, address), dial(t, address), dial(t, address), dial(t, address)
			listener.send(t, "SUBSCRIBE dlock:%s", x)
			listener.lines(t, 6)
			held := func() string { return operator.info(t, "locks")["locks_held"] }
			was := held()
			_, fence := a.granted(t, "DLOCK %s 600000", x)
			listener.event(t, x, fmt.Sprintf("acquired %d ", fence))
			if got := other.ask(t, end.says, x); got != end.answer {
				t.Fatalf("%s: %s", fmt.Sprintf(end.says, x), got)
			}
			eventually(t, "it is not counted", func() bool { return held() == was }, held)
			listener.event(t, x, fmt.Sprintf("%s %d ", end.event, fence))
			if got := other.ask(t, "SET %s third-value NX PX 600000", x); got != "+OK" && name != "set" && name != "overwrite" {
				t.Fatalf("it is not free: %s", got)
			}
			b.granted(t, "DLOCK %s 600000", y)
			a.send(t, "DLOCK %s 600000 WAIT 600000", y)
			waiting(t, address, 1)
			b.send(t, "DLOCK %s 600000 WAIT 600000", x)
			waiters := func() string { return operator.info(t, "locks")["waiters"] }
			eventually(t, "both wait, or one is refused", func() bool { return b.hasReply(t) || waiters() == "2" }, waiters)
			for _, key := range []string{y, x} { // in this order: a has no lock when b waits
				eventually(t, "it is released", func() bool { return operator.ask(t, "DFORCE %s", key) == ":1" }, func() string { return key })
			}
			for _, c := range []*client{a, b} {
				if got := c.line(t); got != "*3" {
					t.Errorf("a waiter received %s", got)
				}
			}
			for _, key := range []string{x, y} {
				operator.ask(t, "DFORCE %s", key)
			}
		})
	}
}

// event reads one message of a lock's channel.
func (c *client) event(t *testing.T, key, want string) {
	t.Helper()
	if got := c.lines(t, 7); got[4] != "dlock:"+key || !strings.HasPrefix(got[6], want) {
		t.Errorf("received %q, want %q of %s", got, want, key)
	}
}
