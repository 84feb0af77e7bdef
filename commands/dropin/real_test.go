package dropin

import (
	"errors"
	"fmt"
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
func (m *master) do(words ...string) any {
	m.t.Helper()
	args := make([]any, len(words))
	for i, w := range words {
		args[i] = w
	}
	answer, err := m.conn.Do(args...)
	var refused faulty.ReplyError
	if errors.As(err, &refused) {
		return refused
	}
	if err != nil {
		m.t.Fatal(err)
	}
	return answer
}

// keyIn is a key before a script runs.
type keyIn struct {
	value string // "": free
	ms    int64  // left; 0 = without an expiry
}

// keysIn are the states of a key that may hold this token.
func keysIn(token string) []keyIn {
	return []keyIn{{}, {token, 60_000}, {token, 1300}, {token, 0}, {"somebody else's token", 60_000}, {token + "x", 1300}, {token[:len(token)-1], 0}, {"x", 60_000}}
}

// left is what PTTL replies.
func (k keyIn) left() int64 {
	switch {
	case k.value == "":
		return -2
	case k.ms == 0:
		return -1
	}
	return k.ms
}

// harness runs a text for several states of its keys, and answers for each: the reply, and
// the value and the ms left of each key. It stands in the text, so KEYS and ARGV are the call's.
const harness = `local function run()
%s
end
local function enc(v)
  if v == nil or v == false then return {'n'} end
  if v == true then return {'i', '1'} end
  if type(v) == 'number' then return {'i', string.format('%%.0f', v < 0 and math.ceil(v) or math.floor(v))} end
  if type(v) == 'string' then return {'b', v} end
  if v.err then return {'e', v.err} end
  if v.ok then return {'s', v.ok} end
  local list = {'l'}
  for i = 1, 1000 do
    if v[i] == nil then break end
    list[#list + 1] = enc(v[i])
  end
  return list
end
local all = {}
for _, state in ipairs({%s}) do
  for i, key in ipairs(KEYS) do
    redis.call('DEL', key)
    local is = state[i]
    if is[1] then
      if is[2] > 0 then redis.call('SET', key, is[1], 'PX', is[2]) else redis.call('SET', key, is[1]) end
    end
  end
  local ok, reply = pcall(run)
  local after = {}
  for i, key in ipairs(KEYS) do
    local value = redis.pcall('GET', key)
    after[#after + 1] = type(value) == 'string' and value or ''
    after[#after + 1] = redis.call('PTTL', key)
  end
  all[#all + 1] = {ok and enc(reply) or {'E', type(reply) == 'table' and reply.err or tostring(reply)}, after}
end
return all`

// result has the answer of a master, and its keys afterwards.
type result struct {
	reply ScriptReply
	threw string
	value []string
	left  []int64
}

func quoteLua(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`, "\n", `\n`).Replace(s) + "'"
}

// runs runs a text for all these states of its keys.
func (m *master) runs(text string, call ScriptCall, states [][]keyIn) (results []result, ok bool) {
	m.t.Helper()
	var list []string
	for _, state := range states {
		var keys []string
		for _, k := range state {
			if k.value == "" {
				keys = append(keys, "{false,0}")
			} else {
				keys = append(keys, fmt.Sprintf("{%s,%d}", quoteLua(k.value), k.ms))
			}
		}
		list = append(list, "{"+strings.Join(keys, ",")+"}")
	}
	words := append([]string{"EVAL", fmt.Sprintf(harness, text, strings.Join(list, ",")), strconv.Itoa(len(call.Keys))}, append(call.Keys[:len(call.Keys):len(call.Keys)], call.Args...)...)
	answer, isList := m.do(words...).([]any)
	if !isList {
		return nil, false // it does not compile
	}
	for _, one := range answer {
		pair := one.([]any)
		r := result{}
		if first := pair[0].([]any); first[0] == "E" {
			r.threw = first[1].(string)
		} else {
			r.reply = decoded(first)
		}
		after := pair[1].([]any)
		for i := 0; i < len(after); i += 2 {
			r.value, r.left = append(r.value, after[i].(string)), append(r.left, after[i+1].(int64))
		}
		results = append(results, r)
	}
	return results, true
}

func decoded(v []any) ScriptReply {
	switch text := ""; v[0] {
	case "i":
		n, _ := strconv.ParseInt(v[1].(string), 10, 64)
		return number(n)
	case "b", "s", "e":
		text = v[1].(string)
		return ScriptReply{Kind: map[any]ReplyKind{"b": KindBulk, "s": KindStatus, "e": KindError}[v[0]], Text: text}
	case "l":
		list := ScriptReply{Kind: KindArray}
		for _, item := range v[1:] {
			list.Items = append(list.Items, decoded(item.([]any)))
		}
		return list
	}
	return ScriptReply{}
}

// like reports whether two answers are the same but for a few ms of a time.
func like(got, want ScriptReply) bool {
	near := got.Int == want.Int || want.Int > 1000 && got.Int-want.Int < 1000 && want.Int-got.Int < 1000
	if got.Kind != want.Kind || got.Text != want.Text || !near || len(got.Items) != len(want.Items) {
		return false
	}
	for i := range got.Items {
		if !like(got.Items[i], want.Items[i]) {
			return false
		}
	}
	return true
}

// differs compares what the class says with what a master did; "" is no difference.
func differs(c *Class, call ScriptCall, state []keyIn, r result, now int64) string {
	var views []KeyView
	var locks []int
	for i, k := range state {
		if !contains(c.Others, i+1) {
			views, locks = append(views, c.See(call, len(locks), k.value, k.left())), append(locks, i)
		}
	}
	change, reply, err := c.Outcome(call, views)
	switch {
	case err != nil:
		return "it has no outcome: " + err.Error()
	case r.threw != "":
		return "the master answers the error " + r.threw
	case !like(reply, r.reply):
		return fmt.Sprintf("it answers %+v, the master %+v", reply, r.reply)
	}
	for n, i := range locks {
		value, from, to := state[i].value, state[i].left()-1000, state[i].left()
		if to < 0 {
			from = to
		}
		if change[n] == Deleted {
			value, from, to = "", -2, -2
		} else if change[n] != Unchanged {
			value = c.TokenOf(call, n)
			ms, timed := c.TTL(call, now)
			if c.Op == ExtendAdd {
				ms += state[i].ms
			}
			if from, to = ms-1500, ms+500; !timed {
				from, to = -1, -1
			}
		}
		if r.value[i] != value || r.left[i] < from || r.left[i] > to {
			return fmt.Sprintf("key %d is to be %q for %d to %d ms, and is %q for %d ms", i+1, value, from, to, r.value[i], r.left[i])
		}
	}
	return ""
}

// differsAgain is differs, and runs a text anew that the machine may have kept waiting for longer than
// the times that are compared.
func (m *master) differsAgain(text string, c *Class, call ScriptCall, state []keyIn, r result) (diff string) {
	for range 8 {
		if diff = differs(c, call, state, r, time.Now().UnixMilli()); diff == "" {
			return ""
		}
		if again, ok := m.runs(text, call, [][]keyIn{state}); ok {
			r = again[0]
		}
	}
	return diff
}

func contains(list []int, n int) bool {
	for _, one := range list {
		if one == n {
			return true
		}
	}
	return false
}

// Every row of the table is replayed on a real master from every state, in the words of these tests;
// and so is the class that the evaluator makes of them.
func TestClass_DoesAndAnswersWhatAMasterDoes(t *testing.T) {
	m := startMaster(t)
	tried := 0
	eachBehaviour(t, func(row knownScript, text string) {
		if strings.Contains(text, "IFEQ") || strings.HasPrefix(text, "#") { // of a later Redis than the one of the tests
			return
		}
		call := row.example()
		for i, word := range strings.Fields(row.args) {
			switch word {
			case "ms@":
				call.Args[i] = strconv.FormatInt(time.Now().Add(20*time.Second).UnixMilli(), 10)
			case "db":
				call.Args[i] = "0"
			}
		}
		classes := []*Class{row.class()}
		if evaluated, _, err := classOfText(text, call); err == nil {
			classes = append(classes, evaluated)
		} else if !isBeyond(text) {
			t.Error(err)
		}
		if row.keys == 0 {
			return // it finds its keys itself
		}
		token := classes[0].TokenOf(call, 0)
		if token == "" {
			token = "a token that nobody gives"
		}
		var states [][]keyIn
		for _, k := range keysIn(token) {
			if state := []keyIn{k}; row.keys == 2 {
				states = append(states, append(state, keyIn{}))
			} else {
				states = append(states, state)
			}
		}
		results, ok := m.runs(text, call, states)
		if !ok {
			t.Errorf("it does not run:\n%s", text)
			return
		}
		for _, class := range classes {
			tried++
			for i, r := range results {
				if v := states[i][0].value; v != token && v != "" && class.Prefix > 0 && strings.HasPrefix(v, token[:8]) {
					continue // an equal beginning is the token
				}
				if diff := m.differsAgain(text, class, call, states[i], r); diff != "" {
					t.Errorf("%s of %s, %+v: %s\n%s", row.purpose, row.library, states[i], diff, text)
				}
			}
		}
	})
	if tried < 140 {
		t.Errorf("%d classes were compared, want 140", tried)
	}
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
		class, _, err := classOfText(text, row.example())
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
