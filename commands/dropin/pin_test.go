package dropin

import (
	"strings"
	"testing"
)

const anySHA = "00112233445566778899aabbccddeeff00112233"

func TestParsePin_ReadsWhatTheErrorOfAnUnknownScriptAsksFor(t *testing.T) {
	for spec, want := range map[string]string{
		"release":                             "release token 1 prefix 0 time {0 0 0} given [] signals [] db 0 pattern \"\" slots false: 0|1!|0|1!",
		"acquire":                             "acquire token 1 prefix 0 time {2 1 0} given [] signals [] db 0 pattern \"\" slots false: OK!|nil|nil|nil",
		"extend,token=2,time=1s":              "extend token 2 prefix 0 time {1 2 0} given [] signals [] db 0 pattern \"\" slots false: 0|1!|0|1!",
		"reacquire,time=3ms@,yes=1,no=-ERROR": "reacquire token 1 prefix 0 time {3 3 0} given [] signals [] db 0 pattern \"\" slots false: 1!|1!|-ERROR|1!",
		"acquire,time=none,args=4":            "acquire token 1 prefix 0 time {0 0 0} given [] signals [] db 0 pattern \"\" slots false: OK!|nil|nil|nil",
	} {
		sha, class, err := ParsePin(strings.ToUpper(anySHA) + "=" + spec)
		if err != nil || sha != anySHA || described(class) != want {
			t.Errorf("%s: %v\n got %s\nwant %s", spec, err, described(class), want)
		}
	}
}

func TestParsePin_RefusesWhatItCannotMean(t *testing.T) {
	for _, value := range []string{
		"", "release", "abc=release", anySHA, anySHA + "=", anySHA + "=free", anySHA + "=release,token=x", anySHA + "=release,token=99",
		anySHA + "=extend,time=2h", anySHA + "=release,colour=red", anySHA + "=release,yes=0", anySHA + "=extend,args=1", anySHA + "=release,token=-1",
	} {
		if _, _, err := ParsePin(value); err == nil || !strings.Contains(err.Error(), "script-class") {
			t.Errorf("'%s': %v", value, err)
		}
	}
}

func TestRecognise_TakesThePinBeforeEverythingElse(t *testing.T) {
	text := "return redis.call('hget', KEYS[1], ARGV[1])"
	_, class, err := ParsePin(shaOf(text).String() + "=release")
	if err != nil {
		t.Fatal(err)
	}
	r := newRecogniser(t, Options{Pins: map[string]*Class{shaOf(text).String(): class}})
	call := Call{Keys: []string{"k"}, Args: []string{"token"}}
	if got := recognise(t, r, text, call, ByPin); got != class {
		t.Error("it is another class")
	}
	if _, _, err := r.Recognise(text, sample); err == nil || !strings.Contains(err.Error(), "pinned") {
		t.Errorf("with two arguments: %v", err)
	}
	if _, err := New(Options{Pins: map[string]*Class{"abc": class}}); err == nil {
		t.Error("a pin of no SHA1 is taken")
	}
	if _, err := New(Options{Remember: -1}); err == nil {
		t.Error("a negative number of outcomes is taken")
	}
}
