package scripts_test

// what one master does with a counter, on a real server.

import (
	"strings"
	"testing"

	"redlockd/pool/faulty"
	"redlockd/redlock/redlocktest"
)

// counterCase is one call on a counter that held a value before.
type counterCase struct {
	name   string
	before any // string value, nil = no key
	args   []any
	answer string
	after  any
}

func runCounterCases(t *testing.T, file string, cases []counterCase) {
	t.Helper()
	s := faulty.Start(t)
	for _, c := range cases {
		redlocktest.On(t, s, "DEL", "n")
		if c.before != nil {
			redlocktest.On(t, s, "SET", "n", c.before)
		}
		if got := redlocktest.ScriptOn(t, s, file, "n", c.args...); got != c.answer {
			t.Errorf("%s: answered %s, want %s", c.name, got, c.answer)
		}
		if got := redlocktest.On(t, s, "GET", "n"); got != c.after {
			t.Errorf("%s: the counter is %v, want %v", c.name, got, c.after)
		}
	}
	redlocktest.On(t, s, "DEL", "n")
	redlocktest.On(t, s, "LPUSH", "n", "x")
	if got := redlocktest.ScriptOn(t, s, file, "n", cases[0].args...); got != "[-1 0 0]" {
		t.Errorf("a list: answered %s, want not a counter", got)
	}
	if got := redlocktest.On(t, s, "LLEN", "n"); got != int64(1) {
		t.Errorf("a list has %v elements afterwards, want it untouched", got)
	}
}

func TestIDScript_AcceptsExactlyWhatLiesAboveTheCounter(t *testing.T) {
	runCounterCases(t, "nextid", []counterCase{
		{"first use of a first incarnation", nil, []any{1, 3, "aa", 0, 1}, "[1 3 1]", "3@aa"},
		{"never seen in a later incarnation", nil, []any{1, 3, "aa", 0, 0}, "[1 3 0]", "3@-"},
		{"never seen, an id confirmed since", nil, []any{8, 9, "aa", 7, 0}, "[1 9 1]", "9@aa"},
		{"never seen, the proposal is below the confirmed id", nil, []any{5, 6, "aa", 7, 0}, "[0 7 1]", nil},
		{"above", "3@aa", []any{4, 4, "aa", 0, 1}, "[1 4 1]", "4@aa"},
		{"above, with a gap", "3@aa", []any{900, 950, "aa", 0, 0}, "[1 950 1]", "950@aa"},
		{"equal", "3@aa", []any{3, 5, "aa", 0, 1}, "[0 3 1]", "3@aa"},
		{"below", "30@aa", []any{4, 40, "aa", 0, 1}, "[0 30 1]", "30@aa"},
		{"shorter digits are smaller", "10@aa", []any{9, 9, "aa", 0, 1}, "[0 10 1]", "10@aa"},
		{"longer digits are larger", "9@aa", []any{10, 10, "aa", 0, 1}, "[1 10 1]", "10@aa"},
		{"exact above 2^53", "9007199254740993@aa", []any{"9007199254740993", "9007199254740993", "aa", 0, 1}, "[0 9007199254740993 1]", "9007199254740993@aa"},
		{"one more above 2^53", "9007199254740993@aa", []any{"9007199254740994", "9007199254740994", "aa", 0, 1}, "[1 9007199254740994 1]", "9007199254740994@aa"},
		{"the last id there is", "9223372036854775806@aa", []any{"9223372036854775807", "9223372036854775807", "aa", 0, 1}, "[1 9223372036854775807 1]", "9223372036854775807@aa"},
		{"another memory's value", "3@bb", []any{4, 5, "aa", 0, 0}, "[1 5 0]", "5@bb"},
		{"another memory's value in a first incarnation", "3@bb", []any{4, 5, "aa", 0, 1}, "[1 5 0]", "5@bb"},
		{"another memory's value, confirmed below it", "30@bb", []any{31, 31, "aa", 9, 0}, "[1 31 1]", "31@aa"},
		{"another memory's value, confirmed above it", "3@bb", []any{10, 12, "aa", 9, 0}, "[1 12 1]", "12@aa"},
		{"refused, and trusted from now on", "30@bb", []any{10, 12, "aa", 9, 0}, "[0 30 1]", "30@aa"},
		{"somebody's text", "hello", []any{1, 1, "aa", 0, 1}, "[-1 0 0]", "hello"},
		{"somebody's number", "41", []any{42, 42, "aa", 0, 1}, "[-1 0 0]", "41"},
	})
}

func TestReseedScript_NeverGoesBelowWhatIsKnown(t *testing.T) {
	runCounterCases(t, "reseed", []counterCase{
		{"never seen", nil, []any{7, "aa"}, "[1 7 1]", "7@aa"},
		{"zero", nil, []any{0, "aa"}, "[1 0 1]", "0@aa"},
		{"above another memory's value", "3@bb", []any{7, "aa"}, "[1 7 1]", "7@aa"},
		{"equal vouches for it", "7@bb", []any{7, "aa"}, "[1 7 1]", "7@aa"},
		{"below", "10@bb", []any{9, "aa"}, "[0 10 0]", "10@bb"},
		{"below, own memory", "10@aa", []any{9, "aa"}, "[0 10 1]", "10@aa"},
		{"exact above 2^53", "9007199254740993@aa", []any{"9007199254740992", "aa"}, "[0 9007199254740993 1]", "9007199254740993@aa"},
		{"somebody's text", "hello", []any{7, "aa"}, "[-1 0 0]", "hello"},
	})
}

func TestDeleteIDScript_DeletesOnlyWhatWasShownAndOnlyInTime(t *testing.T) {
	s, never := faulty.Start(t), "9999999999999"
	for _, c := range []struct {
		name   string
		before any
		args   []any
		answer string // but for the time
		after  any
	}{
		{"shown", "7@aa", []any{"aa", 1, "", ""}, "[1 7 1 7@aa", "7@aa"},
		{"shown, another memory's", "7@bb", []any{"aa", 1, "", ""}, "[1 7 0 7@bb", "7@bb"},
		{"shown, not there in a first incarnation", nil, []any{"aa", 1, "", ""}, "[1 0 1 ", nil},
		{"shown, not there in a later incarnation", nil, []any{"aa", 0, "", ""}, "[1 0 0 ", nil},
		{"shown, exact above 2^53", "9007199254740993@aa", []any{"aa", 0, "", ""}, "[1 9007199254740993 1 ", "9007199254740993@aa"},
		{"shown, untrusted since it was first written", "3@-", []any{"aa", 0, "", ""}, "[1 3 0 ", "3@-"},
		{"shown, somebody's text", "hello", []any{"aa", 1, "", ""}, "[-1 0 0 ", "hello"},
		{"deleted", "7@aa", []any{"aa", 1, never, "7@aa"}, "[1 7 1 7@aa", nil},
		{"not there, as shown", nil, []any{"aa", 1, never, ""}, "[1 0 1 ", nil},
		{"voted since", "8@aa", []any{"aa", 1, never, "7@aa"}, "[0 8 1 8@aa", "8@aa"},
		{"voted since it was not there", "1@aa", []any{"aa", 1, never, ""}, "[0 1 1 1@aa", "1@aa"},
		{"not there any more", nil, []any{"aa", 1, never, "7@aa"}, "[0 0 1 ", nil},
		{"late", "7@aa", []any{"aa", 1, "1000", "7@aa"}, "[0 7 1 7@aa", "7@aa"},
		{"somebody's text", "hello", []any{"aa", 1, never, "hello"}, "[-1 0 0 ", "hello"},
	} {
		redlocktest.On(t, s, "DEL", "n")
		if c.before != nil {
			redlocktest.On(t, s, "SET", "n", c.before)
		}
		if got := redlocktest.ScriptOn(t, s, "deleteid", "n", c.args...); !strings.HasPrefix(got, c.answer) {
			t.Errorf("%s: answered %s, want %s", c.name, got, c.answer)
		}
		if got := redlocktest.On(t, s, "GET", "n"); got != c.after {
			t.Errorf("%s: the counter is %v, want %v", c.name, got, c.after)
		}
	}
}
