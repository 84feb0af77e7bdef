package dropin

import (
	"fmt"
	"strings"
	"testing"
)

const anySHA = "00112233445566778899aabbccddeeff00112233"

func TestParsePin_ReadsTheOptionThatTheErrorNames(t *testing.T) {
	for spec, want := range map[string]string{
		"release":                             "release token 1 prefix 0 time {0 0 0} given [] others [] db 0 pattern \"\": 0|1!|0|1!",
		"acquire":                             "acquire token 1 prefix 0 time {2 1 0} given [] others [] db 0 pattern \"\": OK!|nil|nil|nil",
		"extend,token=2,time=1s":              "extend token 2 prefix 0 time {1 2 0} given [] others [] db 0 pattern \"\": 0|1!|0|1!",
		"reacquire,time=3ms@,yes=1,no=-ERROR": "reacquire token 1 prefix 0 time {3 3 0} given [] others [] db 0 pattern \"\": 1!|1!|-ERROR|1!",
		"acquire,time=none,args=4":            "acquire token 1 prefix 0 time {0 0 0} given [] others [] db 0 pattern \"\": OK!|nil|nil|nil",
	} {
		sha, class, err := parsePin(strings.ToUpper(anySHA) + "=" + spec)
		if err != nil || sha.String() != anySHA || described(class) != want {
			t.Errorf("%s: %v\n got %s\nwant %s", spec, err, described(class), want)
		}
	}
}

// A pinned script answers with its first words for yes and for no.
func TestParsePin_AnswersWithTheFirstWords(t *testing.T) {
	for spec, want := range map[string]string{
		"extend,yes=1|2,no=0|-1": "{3 0  []} {3 1  []}", "extend,yes=[1;pttl],no=[0;pttl]": "{5 0  [{3 0  []} {3 -2  []}]} {5 0  [{3 1  []} {3 500  []}]}",
		"acquire,yes=OK,no=nil": "{1 0 OK []} {0 0  []}",
	} {
		_, class, err := parsePin(anySHA + "=" + spec)
		if err != nil {
			t.Fatal(err)
		}
		_, free, _ := class.Outcome(sample, []KeyView{{State: Free, Left: -2}})
		_, own, _ := class.Outcome(sample, []KeyView{{State: HeldBySelf, Left: 500}})
		if got := fmt.Sprint(free, " ", own); got != want {
			t.Errorf("%s: %s, want %s", spec, got, want)
		}
	}
	_, class, err := parsePin(anySHA + "=acquire,keys=2,args=3,token=1+2,time=3ms,yes=1,no=0")
	if err != nil || class.Keys != 2 || fmt.Sprint(class.Tokens) != "[1 2]" || class.Token != 1 || class.Time.Arg != 3 {
		t.Errorf("%+v, %v", class, err)
	}
}

// The error of a script that is refused has the line that names it, but for its class.
func TestParsePin_ReadsTheLineOfAnUnknownScript(t *testing.T) {
	r := newRecogniser(t)
	text := "return redis.call('hget', KEYS[1], ARGV[1])"
	call := ScriptCall{Keys: []string{"a", "b"}, Args: []string{"token", "1000"}}
	_, err := r.Recognise("", text, call)
	_, line, _ := strings.Cut(err.Error(), "--script-class ")
	pin := strings.Replace(line, "<class>", "extend", 1)
	if sha, _, err := parsePin(pin); err != nil || sha != shaOf(text) {
		t.Fatalf("'%s': %v", line, err)
	}
	pinned := newRecogniser(t, pin)
	if got := recognise(t, pinned, text, call, ByPin); got.Keys != 2 || got.Op != Extend {
		t.Errorf("%+v", got)
	}
}

func TestParsePin_RefusesWhatItCannotMean(t *testing.T) {
	for _, value := range []string{
		"", "release", "abc=release", anySHA, anySHA + "=", anySHA + "=free", anySHA + "=release,token=x", anySHA + "=release,token=99",
		anySHA + "=extend,time=2h", anySHA + "=release,colour=red", anySHA + "=release,yes=0", anySHA + "=extend,args=1", anySHA + "=release,token=-1",
		anySHA + "=release,yes=1|2,no=0|2", anySHA + "=release,keys=2,token=1+2", anySHA + "=acquire,keys=3,token=1+2,time=3", anySHA + "=acquire,keys=2,args=2,token=1+3",
		anySHA + "=acquire,keys=2,token=1+x", anySHA + "=acquire,keys=2,token=1+0",
	} {
		if _, _, err := parsePin(value); err == nil || !strings.Contains(err.Error(), "script-class") {
			t.Errorf("'%s': %v", value, err)
		}
	}
}

func TestRecognise_TakesThePinBeforeEverythingElse(t *testing.T) {
	text := "return redis.call('hget', KEYS[1], ARGV[1])"
	r := newRecogniser(t, shaOf(text).String()+"=release")
	call := ScriptCall{Keys: []string{"k"}, Args: []string{"token"}}
	if got := recognise(t, r, text, call, ByPin); got.Op != Release {
		t.Error("it is another class")
	}
	if _, err := r.Recognise("", text, sample); err == nil || !strings.Contains(err.Error(), "pinned") {
		t.Errorf("with two arguments: %v", err)
	}
	if _, err := New([]string{"abc=release"}); err == nil {
		t.Error("a pin of no SHA1 is taken")
	}
}
