package arg

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestParseCount_AcceptsPlainDigitsOnly(t *testing.T) {
	for s, want := range map[string]int64{"0": 0, "7": 7, "10": 10, "9223372036854775807": math.MaxInt64} {
		if got, ok := ParseCount(s); !ok || got != want {
			t.Errorf("%s: %d %t", s, got, ok)
		}
	}
	for _, s := range []string{"", "-1", "+1", " 1", "1 ", "01", "00", "1e3", "0x10", "1.0", "1_000", "٣", "１", "9223372036854775808", "18446744073709551617", "99999999999999999999999", "1\x00"} {
		if got, ok := ParseCount(s); ok {
			t.Errorf("%q was read as %d", s, got)
		}
	}
}

func TestParseInteger_AcceptsOneMinusSign(t *testing.T) {
	for s, want := range map[string]int64{"0": 0, "-1": -1, "-9223372036854775808": math.MinInt64} {
		if got, ok := ParseInteger(s); !ok || got != want {
			t.Errorf("%s: %d %t", s, got, ok)
		}
	}
	for _, s := range []string{"-", "--1", "-0", "-01", "- 1", "+1"} {
		if got, ok := ParseInteger(s); ok {
			t.Errorf("%q was read as %d", s, got)
		}
	}
}

func FuzzParseCount_AgreesWithStrconv(f *testing.F) {
	for _, s := range []string{"0", "9223372036854775807", "9223372036854775808", "007", "+1", "1_0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, ok := ParseCount(s)
		want, err := strconv.ParseInt(s, 10, 64)
		canonical := err == nil && want >= 0 && strconv.FormatInt(want, 10) == s
		if ok != canonical || ok && got != want {
			t.Errorf("%q: got %d %t, strconv has %d %v", s, got, ok, want, err)
		}
	})
}

func TestWords_KeepTheFirstMistakeAndReadNothingBehindIt(t *testing.T) {
	words := Read([]string{"DMLOCK", "5", "2", "a", "a", "NX"}, nil)
	ttl, keys := words.TTL(time.Minute), words.Keys()
	words.EndOfKeys()
	if err := words.Err(); err == nil || !strings.HasPrefix(err.Error(), "ttl '5' is not an integer") {
		t.Error(err)
	}
	if words.More() || words.Next() != "" || len(keys) > 0 || ttl != 5*time.Millisecond {
		t.Errorf("more %t, next %q, keys %q, ttl %v", words.More(), words.Next(), keys, ttl)
	}
	for want, given := range map[string][]string{
		"key 'a' is given twice":                    {"2", "a", "a"},
		"numkeys is 3, but 2 arguments follow it":   {"3", "a", "b"},
		"unexpected argument 'c' behind the keys":   {"2", "a", "b", "c"},
		"invalid lock name: 0 bytes, allowed are 1": {"1", ""},
	} {
		words := Read(append([]string{"D"}, given...), nil)
		words.Keys()
		words.EndOfKeys()
		if err := words.Err(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", given, err, want)
		}
	}
}

func TestWords_RefuseAHugeNumberOfKeys(t *testing.T) {
	words := wordsOf("9223372036854775807", "a")
	if keys := words.Keys(); len(keys) > 0 || words.Err() == nil {
		t.Errorf("%q, %v", keys, words.Err())
	}
}
