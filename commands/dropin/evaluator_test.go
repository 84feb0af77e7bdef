package dropin

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// beyond are spellings of behaviours that are outside of the language: they call
// functions of their own or of the libraries of Lua, make tables of keys, look for keys, fill
// lists or publish. The scripts of libraries that do so are known by their SHA1.
var beyond = []string{"ARGV[2], 'PX', ARGV[3], 'NX')", "string.sub", ":sub(", "mget", "unpack", "getrange", "math.", "function", "'keys'", "lpush", "publish"}

func isBeyond(text string) bool {
	for _, word := range beyond {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}

func TestEvaluator_ClassifiesTheBehaviourOfEveryKnownScript(t *testing.T) {
	rows, outside := 0, 0
	eachBehaviour(t, func(row knownScript, text string) {
		rows++
		class, _, err := classOfText(text, row.example())
		switch {
		case isBeyond(text) && err == nil:
			t.Errorf("it is outside of the language and taken for %s:\n%s", described(class), text)
		case isBeyond(text):
			outside++
			return
		case err != nil:
			t.Errorf("%s of %s: %v\n%s", row.purpose, row.library, err, text)
			return
		}
		if got, want := described(class), described(row.class()); got != want {
			t.Errorf("%s of %s:\n got %s\nwant %s\n%s", row.purpose, row.library, got, want, text)
		}
		if err := class.Fits(row.example()); err != nil {
			t.Errorf("%s of %s does not fit its own call: %v", row.purpose, row.library, err)
		}
	})
	if rows != 89 || outside != 14 {
		t.Errorf("%d behaviours, %d of them outside of the language, want 89 and 14", rows, outside)
	}
}

func TestEvaluator_AdmitsNoAdversaryAsAWriter(t *testing.T) {
	if len(adversaries) < 120 {
		t.Fatalf("%d adversaries, want 120", len(adversaries))
	}
	for name, text := range adversaries {
		for _, call := range []ScriptCall{sample, {Keys: sample.Keys, Args: sample.Args[:1]}, {Keys: []string{"a", "b"}, Args: sample.Args}, {}} {
			if class, _, err := classOfText(text, call); err == nil && class.Op != Read {
				t.Errorf("%s with %d keys and %d arguments is taken for %s", name, len(call.Keys), len(call.Args), described(class))
			}
		}
	}
}

// What an evaluation can take is bounded by counts, not by a clock: so the test can
// tell how much it is on any machine.
func TestEvaluator_OfAnAdversaryTakesLittleMemory(t *testing.T) {
	const most = 16 << 20
	for name, text := range adversaries {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _, _ = classOfText(text, sample) // whether it is admitted is tested elsewhere
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > most {
			t.Errorf("%s takes %d bytes, allowed are %d", name, used, most)
		}
	}
}

func TestEvaluator_NamesWhatIsWrongWithAScript(t *testing.T) {
	for name, want := range map[string]string{
		"endless while": "loop that is not over KEYS", "unreached endless while": "loop that is not over KEYS", "huge for": "for i = 1, #KEYS",
		"undeclared key": "not among KEYS", "flush": "'flushall'", "io": "'io.open'", "magic length": "length",
		"always one": "does not tell", "prefix of the token": "'string.sub'", "goto": "statement", "huge text": "16384", "nested tables": "nested",
		"hidden in a comment": "control character", "escaped quote": "backslash",
	} {
		if _, _, err := classOfText(adversaries[name], sample); err == nil || !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(want)) {
			t.Errorf("%s: %v, want a word of %s", name, err, want)
		}
	}
}

// The texts of redlock-universal 0.8.5 (MIT): an extension with a least time that must
// be left, several keys with a token each, and a list with what a key holds.
const (
	extendsInTime = `
local current_ttl = redis.call("PTTL", KEYS[1])
local min_ttl = tonumber(ARGV[2])
local new_ttl = tonumber(ARGV[3])

-- Check if key exists
if current_ttl == -2 then
  return {-1, -2}  -- Key doesn't exist
end

-- Check if we have enough time remaining for safe extension
if current_ttl < min_ttl then
  return {0, current_ttl}  -- Too late, include actual TTL for logging
end

-- Check value and extend atomically
local current_value = redis.call("GET", KEYS[1])
if current_value == ARGV[1] then
  redis.call("PEXPIRE", KEYS[1], new_ttl)
  return {1, current_ttl}  -- Success with original TTL
else
  return {-1, current_ttl}  -- Value mismatch (lock stolen)
end
`
	takesBatch = `
  -- Phase 1: Check all keys are available
  for i = 1, #KEYS do
    if redis.call("EXISTS", KEYS[i]) == 1 then
      return {0, i, KEYS[i]}
    end
  end

  -- Phase 2: All keys available, acquire atomically
  local ttl = tonumber(ARGV[#ARGV])
  for i = 1, #KEYS do
    redis.call("SET", KEYS[i], ARGV[i], "PX", ttl)
  end

  return {1, #KEYS}
`
	inspects = `
local value = redis.call("GET", KEYS[1])
-- If key doesn't exist, return nil (becomes null in JS)
if not value then
  return nil
end
local ttl = redis.call("PTTL", KEYS[1])
-- Returns [value, ttl] as array
return {value, ttl}
`
)

func TestEvaluator_ClassifiesAnExtensionThatNeedsTimeLeft(t *testing.T) {
	call := ScriptCall{Keys: []string{"k"}, Args: []string{"f3Kq8Zr1vN5tY7wB2mXc9dLh", "2000", "20000"}}
	class, _, err := classOfText(strings.TrimSpace(extendsInTime), call)
	if err != nil {
		t.Fatal(err)
	}
	want := `extend token 1 prefix 0 time {3 1 0} given [] others [] db 0 pattern "": [-1 -2]|[1 pttl]!|[-1 pttl]|[0 -1]`
	if got := described(class); got != want || fmt.Sprint(class.Numbers) != "[2]" {
		t.Errorf("it is %s, numbers %v", got, class.Numbers)
	}
	if !class.Looks {
		t.Error("no quorum is looked at for what is left")
	}
	for least, fits := range map[string]bool{"0": true, "1": true, "-1": false, "x": false, "1e3": false, "": false} {
		other := ScriptCall{Keys: call.Keys, Args: []string{call.Args[0], least, "20000"}}
		if err := class.Fits(other); (err == nil) != fits {
			t.Errorf("with at least '%s' ms left: %v", least, err)
		}
	}
}

func TestEvaluator_ClassifiesATokenForEachKey(t *testing.T) {
	for n := 1; n <= maxKeys; n++ {
		call := ScriptCall{}
		for i := range n {
			call.Keys, call.Args = append(call.Keys, fmt.Sprint("k", i)), append(call.Args, fmt.Sprint("token-of-", i))
		}
		call.Args = append(call.Args, "20000")
		class, _, err := classOfText(strings.TrimSpace(takesBatch), call)
		if err != nil {
			t.Fatal(err)
		}
		if class.Op != Acquire || class.Time != (Time{Arg: n + 1, Unit: Milliseconds}) || n > 1 && len(class.Tokens) != n || class.Token != 1 {
			t.Errorf("with %d keys it is %s, tokens %v", n, described(class), class.Tokens)
		}
		views := make([]KeyView, n)
		if change, r, err := class.Outcome(call, views); err != nil || change[n-1] != Taken || r.Items[1].Int != int64(n) {
			t.Errorf("%d keys: %v %+v, %v", n, change, r, err)
		}
		views[n-1].State = HeldByOther
		if change, r, err := class.Outcome(call, views); err != nil || change[0] != Unchanged || r.Items[2].Text != call.Keys[n-1] {
			t.Errorf("%d keys, the last is held: %v %+v, %v", n, change, r, err)
		}
	}
}

func TestEvaluator_ClassifiesAListWithTheValueOfAKey(t *testing.T) {
	class, _, err := classOfText(strings.TrimSpace(inspects), ScriptCall{Keys: []string{"k"}})
	if err != nil || class.Op != Read {
		t.Fatal(class, err)
	}
	_, r, err := class.Outcome(ScriptCall{Keys: []string{"k"}}, []KeyView{{HeldByOther, "mine", 1500}})
	if err != nil || r.Kind != KindArray || len(r.Items) != 2 || r.Items[0].Text != "mine" || r.Items[1].Int != 1500 {
		t.Errorf("%+v", r)
	}
}

// With several keys every way in which they can be held is followed: 16 keys in 2
// ways each are 65,536.
func TestEvaluator_FollowsEveryWayInWhichManyKeysAreHeld(t *testing.T) {
	call := ScriptCall{Args: []string{"f3Kq8Zr1vN5tY7wB2mXc9dLh"}}
	for i := range maxKeys {
		call.Keys = append(call.Keys, fmt.Sprint("k", i))
	}
	count := `local n = 0 for _, k in ipairs(KEYS) do if redis.call('get', k) == ARGV[1] then n = n + redis.call('del', k) end end return n`
	class, _, err := classOfText(count, call)
	if err != nil {
		t.Fatal(err)
	}
	if class.Op != Release || !class.Looks {
		t.Errorf("it is %s", described(class))
	}
	for name, text := range map[string]string{
		"another one's key with 15 of one's own":   `local n = 0 for _, k in ipairs(KEYS) do if redis.call('get', k) == ARGV[1] then n = n + redis.call('del', k) end end if n == 15 then redis.call('del', KEYS[16]) end return n`,
		"the key of the turn before":               `local n, last = 0, KEYS[1] for _, k in ipairs(KEYS) do if redis.call('get', k) == ARGV[1] then n = n + redis.call('del', k) end if n == 7 then redis.call('del', last) end last = k end return n`,
		"half of one's own, by what another holds": `local n, v = 0, false for _, k in ipairs(KEYS) do v = redis.call('get', k) if v == ARGV[1] then n = n + redis.call('del', k) end end if n == 8 and v and v ~= ARGV[1] then return 16 end return n`,
	} {
		if class, _, err := classOfText(text, call); err == nil {
			t.Errorf("%s: it is %s", name, described(class))
		}
	}
	call = ScriptCall{Keys: call.Keys[:3], Args: sample.Args}
	for name, text := range map[string]string{
		"with two keys of another it answers as with none": `local n = 0 for _, k in ipairs(KEYS) do local v = redis.call('get', k) if v and v ~= ARGV[1] then n = 1 - n else redis.call('set', k, ARGV[1], 'PX', ARGV[2]) end end return n`,
		"it takes some keys and answers as with all":       `local n = 0 for _, k in ipairs(KEYS) do if redis.call('set', k, ARGV[1], 'NX', 'PX', ARGV[2]) then n = 1 end end return n`,
	} {
		if class, _, err := classOfText(text, call); err == nil {
			t.Errorf("%s, and is %s", name, described(class))
		}
	}
}

// A condition on an argument makes a class for its value alone.
func TestEvaluator_ClassifiesAScriptOncePerFlag(t *testing.T) {
	text := behaviours["extend-add 1 (token ms =0) 0|1!|0|0"][0]
	for flag, want := range map[string]Op{"0": ExtendAdd, "1": Extend} {
		call := ScriptCall{Keys: sample.Keys, Args: append(sample.Args[:2:2], flag)}
		class, _, err := classOfText(text, call)
		if err != nil || class.Op != want || len(class.Given) != 1 || class.Given[0] != (Given{3, flag}) {
			t.Errorf("with %s it is %v, %v", flag, class, err)
		}
	}
}

// A script that takes or deletes another holder's lock is classed so, in any spelling.
func TestEvaluator_NamesWhatTakesAnothersLock(t *testing.T) {
	for text, want := range map[string]Op{
		`return redis.call('expire', KEYS[1], 0)`:                                 Discard,
		`return redis.call('pexpire', KEYS[1], -1)`:                               Discard,
		`return redis.call('getdel', KEYS[1])`:                                    Discard,
		`return redis.call('unlink', KEYS[1])`:                                    Discard,
		`return redis.call('setex', KEYS[1], 20, ARGV[1])`:                        Overwrite,
		`return redis.call('psetex', KEYS[1], ARGV[2], ARGV[1])`:                  Overwrite,
		`redis.call('del', KEYS[1]) return redis.call('setnx', KEYS[1], ARGV[1])`: Overwrite,
	} {
		class, _, err := classOfText(text, sample)
		if err != nil || class.Op != want {
			t.Errorf("%s: %v, %v, want %s", text, class, err, want)
		}
	}
}

func TestEvaluator_TakesAnExpiryOfItsOwn(t *testing.T) {
	for text, want := range map[string]int64{
		`if redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', 5000) then return 1 end return 0`:    5000,
		`if redis.call('set', KEYS[1], ARGV[1], 'NX', 'EX', '20') then return 1 end return 0`:    20_000,
		`if redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end return 0`: 0,
	} {
		class, _, err := classOfText(text, sample)
		if err != nil || class.Op != Acquire || class.Time.Fixed != want || (want > 0) != (class.Time.Unit == FixedMilliseconds) {
			t.Errorf("%v %v, want %d ms:\n%s", class, err, want, text)
		}
	}
}
