package dropin

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
)

func newRecogniser(t *testing.T, pins ...string) *Recogniser {
	t.Helper()
	r, err := New(pins)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func recognise(t *testing.T, r *Recogniser, text string, call ScriptCall, want RecognisedBy) *Class {
	t.Helper()
	class, err := r.Recognise("", text, call)
	if err != nil || class.By != want {
		t.Fatalf("%+v (%v), want one by %d:\n%s", class, err, want, text)
	}
	return class
}

func TestKnownScripts_AreFoundBySHAAloneInEitherCase(t *testing.T) {
	r := newRecogniser(t)
	for _, row := range knownScripts() {
		for _, sha := range []string{row.sha, strings.ToUpper(row.sha)} {
			class, _ := r.Find("", sha, row.example())
			if class == nil || class.By != BySHA || class.Op != row.op || class.Library != row.library {
				t.Errorf("%s of %s: %+v", row.purpose, row.library, class)
			}
		}
	}
	if len(known()) != 89 {
		t.Errorf("the table has %d scripts, want 89: no two rows may have one SHA1", len(known()))
	}
	for _, sha := range []string{"", "c3f8", strings.Repeat("z", 40), strings.Repeat("0", 40)} {
		if c, _ := r.Find("", sha, ScriptCall{}); c != nil {
			t.Errorf("'%s' is found", sha)
		}
	}
}

func TestKnownScripts_AreNotKnownForOtherCalls(t *testing.T) {
	r := newRecogniser(t)
	const extend = "a4e8783852e6b949f9ef3a97212805108459a890"
	for _, args := range [][]string{{"token", "1000", "1"}, {"token", "1000"}, {"token", "0", "0"}, {"token", "-5", "0"}, {"token", "1e3", "0"}} {
		if c, _ := r.Find("", extend, ScriptCall{Keys: []string{"k"}, Args: args}); c != nil {
			t.Errorf("the extension is known with %q", args)
		}
	}
	if c, _ := r.Find("", extend, ScriptCall{Keys: []string{"k", "l"}, Args: []string{"token", "1000", "0"}}); c != nil {
		t.Error("the extension is known with two keys")
	}
}

func TestRecognise_EvaluatesOnce(t *testing.T) {
	r := newRecogniser(t)
	text := "local v = redis.call('GET', KEYS[1]) if v ~= ARGV[1] then return 0 end return redis.call('del', KEYS[1])"
	first := recognise(t, r, text, sample, ByText)
	if recognise(t, r, text, sample, ByText) != first {
		t.Error("it was evaluated again")
	}
	if class, _ := r.Find("", shaOf(text).String(), sample); class != first || class.By != ByText {
		t.Errorf("its SHA1 is that of %+v", class)
	}
}

// A library's script with several keys is the library's still.
func TestRecognise_ClassifiesAScriptOfALibraryWithMoreKeys(t *testing.T) {
	r := newRecogniser(t)
	const refresh = "5a22d7e8431313862816d4416b5e46dd70fc340d"
	call := ScriptCall{Keys: []string{"a", "b", "c"}, Args: sample.Args}
	class, err := r.Find("", refresh, call)
	if err != nil || class.By != BySHA || class.Library != "bsm/redislock" || class.Keys != 3 {
		t.Fatalf("%+v: %v", class, err)
	}
	if err := class.Fits(ScriptCall{Keys: []string{"a", "b", "a"}, Args: sample.Args}); err == nil {
		t.Error("one key twice is taken for two")
	}
}

func TestRecognise_NamesTheSHAAndTheOptionOfAnUnknownScript(t *testing.T) {
	r := newRecogniser(t)
	text := "return redis.call('hset', KEYS[1], 'a', 'b')"
	for range 2 { // the second time it is remembered
		class, err := r.Recognise("", text, sample)
		if class != nil || err == nil {
			t.Fatalf("%+v, %v", class, err)
		}
		sha := shaOf(text).String()
		for _, want := range []string{"script " + sha, "'hset'", "--script-class " + sha + "="} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("'%v' does not say %s", err, want)
			}
		}
		if strings.ContainsAny(err.Error(), "\r\n") || strings.Contains(err.Error(), sample.Args[0]) {
			t.Errorf("%q breaks the line or shows the token", err)
		}
	}
}

// A call that does not fit says nothing of the next one.
func TestRecognise_ForgetsARefusalThatIsOfTheCallAlone(t *testing.T) {
	good := ScriptCall{Keys: []string{"a", "b"}, Args: []string{"f3Kq8Zr1vN5tY7wB2mXc9dLh", "2000"}}
	for name, text := range map[string]string{
		"evaluated": `for _, k in ipairs(KEYS) do local v = redis.call('get', k) if v and v ~= ARGV[1] then return 0 end end for _, k in ipairs(KEYS) do redis.call('set', k, ARGV[1], 'PX', ARGV[2]) end return 1`,
	} {
		r := newRecogniser(t)
		for what, bad := range map[string]ScriptCall{
			"a negative time": {Keys: good.Keys, Args: []string{good.Args[0], "-200"}},
			"one key twice":   {Keys: []string{"a", "a"}, Args: good.Args},
		} {
			if _, err := r.Recognise("", text, bad); err == nil {
				t.Errorf("%s: %s is served", name, what)
			}
			recognise(t, r, text, good, ByText)
		}
	}
}

func TestRecognise_RefusesFlagsThatRedisDoesNotKnow(t *testing.T) {
	r := newRecogniser(t)
	for line, refused := range map[string]string{
		"#!lua flags=allow-undeclared-keys,disable-atomicity": "unexpected flag in script shebang: allow-undeclared-keys",
		"#!lua name=x": "unknown lua shebang option", "#!lua flags=allow-stale,no-cluster": "", "#!lua": "",
	} {
		_, err := r.Recognise("", line+"\n"+release, ScriptCall{Keys: sample.Keys, Args: sample.Args[:1]})
		if (err != nil) != (refused != "") || err != nil && !strings.Contains(err.Error(), refused) {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// A flag in one call must not decide what is believed of another call.
func TestRecognise_ClassifiesAScriptOncePerFlag(t *testing.T) {
	r := newRecogniser(t)
	text := `local v = redis.call('get', KEYS[1]) if v == ARGV[1] or not v and ARGV[3] == 'yes' then return redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[2]) end`
	call := func(flag string) ScriptCall {
		return ScriptCall{Keys: []string{"orders"}, Args: []string{"f3Kq8Zr1vN5tY7wB2mXc9dLh", "20000", flag}}
	}
	if c := recognise(t, r, text, call("yes"), ByText); c.Op != Reacquire {
		t.Errorf("with yes it is %s", c.Op)
	}
	if c := recognise(t, r, text, call("no"), ByText); c.Op != Extend {
		t.Errorf("with no it is %s", c.Op)
	}
	if c := recognise(t, r, text, call("yes"), ByText); c.Op != Reacquire {
		t.Errorf("with yes it is %s at the second time", c.Op)
	}
}

func TestRecognise_ForgetsRatherThanGrows(t *testing.T) {
	r := newRecogniser(t)
	r.maxRemembered = 4
	for i := range 40 {
		text := fmt.Sprintf("return redis.call('hget', KEYS[1], '%d')", i)
		if _, err := r.Recognise("", text, sample); err == nil {
			t.Fatal("a hash is a lock")
		}
		recognise(t, r, fmt.Sprintf("-- %d\n", i)+release, ScriptCall{Keys: sample.Keys, Args: sample.Args[:1]}, ByText)
	}
	if n := len(r.bySHA); n > 4 || len(r.order) > 4 {
		t.Errorf("%d outcomes are kept, 4 are allowed", n)
	}
}

func TestRecognise_ServesManyCallersAtOnce(t *testing.T) {
	r := newRecogniser(t)
	r.maxRemembered = 8
	var all []string
	for _, spellings := range behaviours {
		all = append(all, spellings...)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				text := all[rand.IntN(len(all))]
				if class, err := r.Recognise("", text, sample); err == nil && class.Fits(sample) != nil {
					t.Errorf("a class that does not fit: %s", text)
				}
			}
		})
	}
	wg.Wait()
}

// A semaphore is refused: masters could choose different slots.
func TestEvaluator_RefusesTheFirstFreeOneOfSeveralKeys(t *testing.T) {
	text := behaviours["acquire 1 (any s token) {arg1}1!|nil|nil|nil"][0]
	call := ScriptCall{Keys: []string{"a1", "a2", "a3"}, Args: []string{"a", "20", "f3Kq8Zr1vN5tY7wB2mXc9dLh"}}
	if class, _, err := classOfText(text, call); err == nil || !strings.Contains(err.Error(), "LIMIT n") {
		t.Errorf("it is %v, %v", class, err)
	}
}

// Long texts of one user push out no class of another, and are bounded in bytes.
func TestRecognise_BoundsTheBytesOfTexts(t *testing.T) {
	r, _ := New(nil)
	const small = "return redis.call('get', KEYS[1])"
	call := ScriptCall{Keys: []string{"k"}}
	for i := range 200 {
		text := fmt.Sprintf("%s --%*d", small, maxScript/2, i)
		if _, err := r.Recognise("greedy", text, call); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			if _, err := r.Recognise("modest", small, call); err != nil {
				t.Fatal(err)
			}
		}
	}
	if r.bytes > maxRememberedBytes || r.bytes < maxRememberedBytes/2 {
		t.Errorf("%d bytes are kept, allowed are %d", r.bytes, maxRememberedBytes)
	}
	if class, err := r.Find("modest", shaOf(small).String(), call); class == nil || err != nil {
		t.Errorf("the class of another user is lost: %v", err)
	}
}
