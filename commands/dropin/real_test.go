package dropin

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlockd/pool/faulty"
)

// master is a real redis-server that a test talks to.
type master struct {
	t    *testing.T
	conn *faulty.Conn
}

func startMaster(t *testing.T) *master {
	t.Helper()
	server := faulty.Start(t)
	conn, err := faulty.Dial(server.Addr(), 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return &master{t: t, conn: conn}
}

// do sends one command.
func (m *master) do(words ...string) ScriptReply {
	m.t.Helper()
	args := make([]any, len(words))
	for i, w := range words {
		args[i] = w
	}
	answer, err := m.conn.Do(args...)
	var refused faulty.ReplyError
	if errors.As(err, &refused) {
		return failed(string(refused))
	}
	if err != nil {
		m.t.Fatal(err)
	}
	return asReply(answer)
}

func asReply(answer any) ScriptReply {
	switch v := answer.(type) {
	case int64:
		return number(v)
	case string:
		return bulk(v)
	case []any:
		list := ScriptReply{Kind: KindArray}
		for _, item := range v {
			list.Items = append(list.Items, asReply(item))
		}
		return list
	}
	return ScriptReply{}
}

// hold prepares a key for a holding.
func (m *master) hold(key, token string, h KeyState) {
	m.t.Helper()
	m.do("FLUSHALL")
	switch h {
	case HeldBySelf:
		m.do("SET", key, token, "PX", "60000")
	case HeldByOther:
		m.do("SET", key, "somebody else's token", "PX", "60000")
	case NoExpiry:
		m.do("SET", key, token)
	}
}

func (m *master) eval(text string, call ScriptCall) ScriptReply {
	m.t.Helper()
	return m.do(append(append([]string{"EVAL", text, strconv.Itoa(len(call.Keys))}, call.Keys...), call.Args...)...)
}

func TestVote_OfARealMasterAgreesWithTheClass(t *testing.T) {
	m := startMaster(t)
	tried := 0
	eachBehaviour(t, func(row knownScript, text string) {
		if strings.Contains(text, "IFEQ") {
			return // of a later Redis than the one of the tests
		}
		if isBeyond(text) {
			return
		}
		tried++
		call := row.example()
		for i, word := range strings.Fields(row.args) {
			switch word {
			case "ms@":
				call.Args[i] = strconv.FormatInt(time.Now().Add(20*time.Second).UnixMilli(), 10)
			case "db":
				call.Args[i] = "0"
			}
		}
		evaluated, err := classOfText(text, call)
		if err != nil {
			t.Error(err)
			return
		}
		for _, class := range []*Class{evaluated, row.class()} {
			for h := Free; h < keyStates; h++ {
				m.votes(class, row, text, call, h)
			}
		}
	})
	if tried < 60 {
		t.Errorf("%d scripts were run, want 60", tried)
	}
}

// The token that redlock-cpp continues a lock with takes the place of its former token, which
// is an argument of any value.
func TestVote_OfARealMasterThatReplacesAToken(t *testing.T) {
	m := startMaster(t)
	for _, row := range knownScripts() {
		if row.library != "redlock-cpp" || row.purpose != "continue" {
			continue
		}
		text, class, call := behaviours[row.behaviour()][0], row.class(), row.example()
		for h := Free; h < keyStates; h++ {
			m.votes(class, row, text, call, h)
		}
		m.do("SET", call.Keys[0], call.Args[0], "PX", "60000")
		if reply := m.eval(text, call); class.Vote(call, reply) != Yes || m.do("GET", call.Keys[0]).Text != class.TokenOf(call) {
			t.Errorf("the former token is not replaced: %+v", reply)
		}
		return
	}
	t.Error("the table has no such script")
}

// votes runs a script on the master and compares its answer and its effect with the
// class.
func (m *master) votes(class *Class, row knownScript, text string, call ScriptCall, h KeyState) {
	m.t.Helper()
	key := "lock:orders"
	if len(call.Keys) > 0 {
		key = call.Keys[0]
	}
	token := class.TokenOf(call)
	if token == "" {
		token = "a token that nobody gives"
	}
	m.hold(key, token, h)
	reply := m.eval(text, call)
	name := fmt.Sprintf("%s of %s, holding %d: %v", row.purpose, row.library, h, reply)
	if got := class.Vote(call, reply); class.outcomes[h].done != (got == Yes) {
		m.t.Errorf("%s is vote %d, the script does it: %v", name, got, class.outcomes[h].done)
	}
	if !class.explains(int(h), call, reply) {
		m.t.Errorf("%s is not explained by its holding", name)
	}
	if class.Op != Read {
		m.did(class, name, key, token, h)
	}
}

// did looks at the key afterwards.
func (m *master) did(class *Class, name, key, token string, h KeyState) {
	m.t.Helper()
	holds, left := m.do("GET", key), m.do("PTTL", key).Int
	want, least, most := ScriptReply{}, int64(-2), int64(-2)
	switch h {
	case HeldBySelf, HeldByOther:
		want, least, most = bulk(token), 30_000, 60_000
		if h == HeldByOther {
			want = bulk("somebody else's token")
		}
	case NoExpiry:
		want, least, most = bulk(token), -1, -1
	}
	if class.outcomes[h].done {
		switch class.Op {
		case Release, Discard:
			want, least, most = ScriptReply{}, -2, -2
		case ExtendAdd:
			want, least, most = bulk(token), 60_001, 80_000
		default:
			want, least, most = bulk(token), 1000, 20_000
		}
	}
	if holds.Kind != want.Kind || holds.Text != want.Text || left < least || left > most {
		m.t.Errorf("%s leaves %v with %d ms, want %v with %d to %d", name, holds, left, want, least, most)
	}
}

// Scripts over several keys in random states on a real master: the answer and the effect
// agree with the class for every key.
func TestVote_OfARealMasterWithKeysHeldInRandomWays(t *testing.T) {
	m := startMaster(t)
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 1))
	const token = "f3Kq8Zr1vN5tY7wB2mXc9dLh"
	texts := []string{
		`local n = 0 for _, k in ipairs(KEYS) do if redis.call('get', k) == ARGV[1] then n = n + redis.call('del', k) end end return n`,
		`for i, k in ipairs(KEYS) do if redis.call('exists', k) == 1 then return {0, i, k} end end for _, k in ipairs(KEYS) do redis.call('set', k, ARGV[1], 'PX', ARGV[2]) end return {1, #KEYS}`,
		`for i = 1, #KEYS do if redis.call('get', KEYS[i]) ~= ARGV[1] then return false end end for i = 1, #KEYS do redis.call('pexpire', KEYS[i], ARGV[2]) end return redis.status_reply('OK')`,
		`local n = 0 for i = 1, #KEYS do if redis.call('set', KEYS[i], ARGV[1], 'NX', 'PX', ARGV[2]) then n = n + 1 end end return n`,
		`local n = 0 for i = 1, #KEYS do local left = redis.call('pttl', KEYS[i]) if left > 30000 and redis.call('get', KEYS[i]) == ARGV[1] then n = n + redis.call('pexpire', KEYS[i], ARGV[2]) end end return n`,
		`return redis.call('del', KEYS[1], KEYS[2], KEYS[3])`,
		strings.TrimSpace(extendsInTime), strings.TrimSpace(takesBatch), release,
	}
	for round := range 150 {
		text := texts[random.IntN(len(texts))]
		call := ScriptCall{Keys: []string{"a", "b", "c"}, Args: []string{token, "20000"}}
		switch text {
		case strings.TrimSpace(extendsInTime):
			call = ScriptCall{Keys: []string{"a"}, Args: []string{token, "30000", "20000"}}
		case release:
			call = ScriptCall{Keys: []string{"a"}, Args: []string{token}}
		case strings.TrimSpace(takesBatch):
			call.Args = []string{token, "another token of ours", "a third token of ours", "20000"}
		}
		class, err := classOfText(text, call)
		if err != nil {
			t.Fatal(err)
		}
		m.do("FLUSHALL")
		last := eachState[random.IntN(len(eachState))]
		for i, key := range call.Keys {
			if random.IntN(3) == 0 { // else as the key before
				last = eachState[random.IntN(len(eachState))]
			}
			own := token
			if class.Tokens != nil {
				own = call.Args[i]
			}
			m.holds(key, own, last, []string{"60000", "25000"}[random.IntN(4)/3])
		}
		before := m.values(call.Keys)
		reply := m.eval(text, call)
		after := m.values(call.Keys)
		vote := class.Vote(call, reply)
		if vote == Unclear {
			t.Fatalf("seed %d, round %d: %+v is no answer that is predicted, keys %q\n%s", seed, round, reply, before, text)
		}
		all := true
		for i := range call.Keys {
			if after[i] != before[i] && strings.HasPrefix(before[i], "somebody") && class.Op != Discard {
				t.Fatalf("seed %d, round %d: another's key became %q, it was %q\n%s", seed, round, after[i], before[i], text)
			}
			all = all && after[i] != before[i]
		}
		if all != (vote == Yes) {
			t.Fatalf("seed %d, round %d: vote %d, keys %q became %q\n%s", seed, round, vote, before, after, text)
		}
	}
}

// holds prepares one key.
func (m *master) holds(key, token string, state states, ms string) {
	m.t.Helper()
	value := "somebody else's token"
	if state&selfStates != 0 {
		value = token
	}
	switch {
	case state == stateFree:
	case state&timedStates != 0:
		m.do("SET", key, value, "PX", ms)
	default:
		m.do("SET", key, value)
	}
}

// values are what keys hold, each with whether it ends within the lease of the tests.
func (m *master) values(keys []string) []string {
	m.t.Helper()
	var values []string
	for _, key := range keys {
		left := m.do("PTTL", key).Int
		values = append(values, fmt.Sprint(m.do("GET", key).Text, left > 0 && left <= 20_000))
	}
	return values
}

// The texts of libraries belong to them and are not kept here. LOCK_SCRIPTS may name a
// directory with some of them, one a file. Each one inside the language is classified by its
// text alone as the table does.
func TestEvaluator_ClassifiesTheTextsOfLibrariesAsTheTableDoes(t *testing.T) {
	dir := os.Getenv("LOCK_SCRIPTS")
	if dir == "" {
		t.Skip("LOCK_SCRIPTS names no directory with texts of lock libraries")
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	texts := make(map[string]string) // by SHA1
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(dir, file.Name()))
		if err != nil {
			t.Fatal(err)
		}
		texts[shaOf(string(text)).String()] = string(text)
	}
	found := 0
	for _, row := range knownScripts() {
		text, ok := texts[row.sha]
		if !ok || row.keys == 0 { // one that makes up the names of its keys is known by its SHA1 alone
			continue
		}
		class, err := classOfText(text, row.example())
		if err != nil {
			t.Logf("outside of the language: %s of %s: %v", row.purpose, row.library, err)
			continue
		}
		found++
		if got, want := described(class), described(row.class()); got != want {
			t.Errorf("%s of %s:\n got %s\nwant %s", row.purpose, row.library, got, want)
		}
	}
	t.Logf("%d of %d known scripts, %d texts", found, len(knownScripts()), len(files))
	if found == 0 {
		t.Error("no text is that of a known script")
	}
}
