package sim

// differential_test.go: a simulated master answers as redis-server does, and
// keeps the same keys. The same random commands and scripts of the product go to
// both; after each one the reply and every key it may have touched are compared.

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlockd/pool"
	"redlockd/pool/faulty"
	"redlockd/redlock/sim/fake"
)

// dump shows a key as a script sees it. Fields of a hash are in no order.
const dump = `local out = {}
for i, key in ipairs(KEYS) do
  local kind = redis.call('TYPE', key).ok
  local items = {}
  if kind == 'string' then items = {redis.call('GET', key)}
  elseif kind == 'zset' then items = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
  elseif kind == 'hash' then
    local flat = redis.call('HGETALL', key)
    for n = 1, #flat, 2 do items[#items + 1] = flat[n] .. '=' .. flat[n + 1] end
    table.sort(items)
  end
  out[i] = {kind, redis.call('PEXPIRETIME', key), items}
end
return out`

// differential is a real master and a simulated one that run the same commands.
type differential struct {
	t       *testing.T
	random  *rand.Rand
	real    *faulty.Conn
	server  *server
	scripts map[string]string // SHA1 by file
	history []string
}

func newDifferential(t *testing.T, seed uint64) *differential {
	t.Helper()
	real, err := faulty.Dial(faulty.Start(t).Addr(), 20*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(real.Close)
	lab := NewLab()
	w := NewWorld(Find("calm-3"), 1, lab)
	w.begin() // a daemon loads every script there is
	w.finish()
	s := newServer(w, "a")
	s.Changed = nil
	s.start(fake.Memory{})
	tw := &differential{t: t, random: rand.New(rand.NewPCG(seed, 1)), real: real, server: s, scripts: map[string]string{}}
	for sha, text := range lab.scripts.Texts {
		file := nameOf(t, text)
		tw.scripts[file] = sha
		if answer, err := real.Do("SCRIPT", "LOAD", text); err != nil || answer != sha {
			t.Fatalf("SCRIPT LOAD of %s: %v %v", file, answer, err)
		}
		s.Loaded[sha] = true
	}
	info, err := real.Do("INFO", "server")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(info.(string), "run_id:")
	s.runID, _, _ = strings.Cut(rest, "\r\n")
	s.infoText = s.describe()
	return tw
}

// fileOf finds the script that a text was loaded from, by its first line.
func fileOf(t *testing.T, text string) string {
	t.Helper()
	for _, pattern := range []string{"../scripts/*.lua", "../../pool/scripts/*.lua", "../../pool/admission/*.lua"} {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			first, _, _ := strings.Cut(string(content), "\n")
			if strings.HasPrefix(text, first+"\n") {
				return strings.TrimSuffix(filepath.Base(file), ".lua")
			}
		}
	}
	t.Fatalf("a script of no file was loaded:\n%s", text)
	return ""
}

// nameOf distinguishes the scripts that check a queue first: they begin alike.
func nameOf(t *testing.T, text string) string {
	t.Helper()
	name := fileOf(t, text)
	if name != "fair" {
		return name
	}
	for _, behind := range behindQueues() {
		first, _, _ := strings.Cut(source(t, "redlock/scripts/"+behind+".lua"), "\n")
		if strings.Contains(text, "\n"+first+"\n") {
			return "fair " + behind
		}
	}
	t.Fatalf("no lock script stands behind the look at the queue:\n%s", text)
	return ""
}

// touched are the keys that an operation may have changed, beside the locks'.
func touched(words []string) []string {
	keys := []string{"k1", "k2", "k3", "seal"}
	for _, word := range words {
		if (slices.Contains(queueKeys(), word) || word == "notes") && !slices.Contains(keys, word) {
			keys = append(keys, word)
		}
	}
	return keys
}

// step sends one operation to both and compares.
func (tw *differential) step(words []string) {
	tw.t.Helper()
	tw.history = append(tw.history, strings.Join(words, " "))
	args := make([]any, len(words))
	for i := range words {
		args[i] = words[i]
	}
	theirs, err := tw.real.Do(args...)
	tw.tick()
	tw.sameMoment(words, theirs)
	ours := tw.server.execute(nil, words)
	a, b := flat(theirs, err), flatReply(ours)
	if words[0] == "EVALSHA" && words[1] == tw.scripts["inspect"] { // permits that end together are in no order
		a, b = sorted(a), sorted(b)
	}
	if !alike(a, b, words[0] != "PEXPIRETIME") {
		tw.fail("the reply", a, b)
	}
	keys := touched(words)
	state := append([]string{"EVAL", dump, strconv.Itoa(len(keys))}, keys...)
	args = args[:0]
	for _, word := range state {
		args = append(args, word)
	}
	theirs, err = tw.real.Do(args...)
	tw.tick()
	ours = tw.server.execute(nil, state)
	if a, b := flat(theirs, err), flatReply(ours); a != b {
		tw.fail("the memory", a, b)
	}
}

// sameMoment gives the simulated master the time of the real one: an admission stores its
// clock, to the microsecond, and returns it, and so does the deletion of a counter.
func (tw *differential) sameMoment(words []string, reply any) {
	said, ok := reply.([]any)
	if words[0] != "EVALSHA" || !ok {
		return
	}
	if words[1] == tw.scripts["deleteid"] {
		ms, _ := strconv.ParseInt(said[4].(string), 10, 64)
		tw.server.readClock(ms*1000 - epoch)
	}
	if words[1] != tw.scripts["admit"] {
		return
	}
	var us int64
	switch said[0] {
	case "OK":
		us, _ = strconv.ParseInt(said[2].(string), 10, 64)
	case "CLOCK":
		us, _ = strconv.ParseInt(words[4], 10, 64)
		off, _ := strconv.ParseInt(said[1].(string), 10, 64)
		us += off
	default:
		return
	}
	tw.server.readClock(us - epoch)
}

func (tw *differential) fail(what, theirs, ours string) {
	tw.t.Helper()
	last := tw.history[max(0, len(tw.history)-12):]
	tw.t.Fatalf("after %d operations %s differs\n\tredis-server: %s\n\tsimulated:    %s\nlast operations:\n\t%s",
		len(tw.history), what, theirs, ours, strings.Join(last, "\n\t"))
}

// flat writes a real reply in words.
func flat(reply any, err error) string {
	if err != nil {
		return "error"
	}
	switch r := reply.(type) {
	case nil:
		return "nil"
	case error:
		return "error"
	case []any:
		var items []string
		for _, item := range r {
			items = append(items, flat(item, nil))
		}
		return "[ " + strings.Join(items, " ") + " ]"
	}
	return fmt.Sprint(reply)
}

func flatReply(r pool.Reply) string {
	switch r.Kind {
	case pool.ReplyNil:
		return "nil"
	case pool.ReplyInt:
		return strconv.FormatInt(r.Int, 10)
	case pool.ReplyError:
		return "error"
	case pool.ReplyArray:
		var items []string
		for _, item := range r.Items {
			items = append(items, flatReply(item))
		}
		return "[ " + strings.Join(items, " ") + " ]"
	}
	return r.Str
}

func sorted(words string) string {
	return strings.Join(slices.Sorted(slices.Values(strings.Fields(words))), " ")
}

// alike compares word by word. The two clocks are read one after another, so
// times that are left, and clocks themselves, may differ by a moment.
func alike(a, b string, times bool) bool {
	if a == b {
		return true
	}
	as, bs := strings.Fields(a), strings.Fields(b)
	if len(as) != len(bs) {
		return false
	}
	for i := range as {
		if as[i] == bs[i] {
			continue
		}
		x, err1 := strconv.ParseInt(as[i], 10, 64)
		y, err2 := strconv.ParseInt(bs[i], 10, 64)
		const margin = 20_000 // ms
		if !times || err1 != nil || err2 != nil || x < 1000 || max(x-y, y-x) > margin {
			return false
		}
	}
	return true
}

// What SIM_DIFFERENTIAL is for: a million takes some minutes.
func TestMasters_AnswerAsRedisDoes(t *testing.T) {
	most := int64(10_000)
	if testing.Short() {
		most = 5_000
	}
	operations := environment(t, "SIM_DIFFERENTIAL", most)
	seed := uint64(environment(t, "SIM_SEED", 1))
	tw := newDifferential(t, seed)
	files := slices.Sorted(maps.Keys(tw.scripts))
	for range operations {
		if tw.random.IntN(3) == 0 {
			tw.step(tw.command())
		} else {
			tw.step(tw.script(files[tw.random.IntN(len(files))]))
		}
		if len(tw.history) > 1000 {
			tw.history = tw.history[len(tw.history)-20:]
		}
	}
	t.Logf("%d operations, seed %d, scripts %v", operations, seed, files)
	if operations >= 1_000_000 {
		writeResults(t, simPage, "sim-vs-redis", fmt.Sprintf("`make sim-vs-redis`, %s: **%d operations**, seed %d, scripts %s: no difference.\n",
			time.Now().UTC().Format(time.DateOnly), operations, seed, strings.Join(files, ", ")))
	}
}

// A script with another head would not be observed any more, and nothing would fail.
func TestScriptHeads_EachBeginsOneScript(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "redlock/scripts/*.lua"))
	if err != nil || len(files) < 10 {
		t.Fatalf("%d scripts, %v", len(files), err)
	}
	for head := range scriptHeads {
		n := 0
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(string(text), head) {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%d scripts begin with %q, want 1", n, head)
		}
	}
}
