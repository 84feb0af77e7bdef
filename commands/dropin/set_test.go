package dropin

import (
	"math"
	"reflect"
	"strings"
	"testing"
)

func TestParseSet_ReadsEverySpelling(t *testing.T) {
	after := func(ms int64) Expiry { return Expiry{Kind: After, MS: ms} }
	for line, want := range map[string]SetRequest{
		"SET k v":                        {},
		"SET k v NX PX 20000":            {When: IfAbsent, Expiry: after(20_000)},
		"SET k v PX 20000 NX":            {When: IfAbsent, Expiry: after(20_000)},
		"set k v ex 8 nx":                {When: IfAbsent, Expiry: after(8000)},
		"SET k v XX PX 1":                {When: IfPresent, Expiry: after(1)},
		"SET k v nX nx Px 5":             {When: IfAbsent, Expiry: after(5)},
		"SET k v PXAT 1800000000000":     {Expiry: Expiry{Kind: At, MS: 1_800_000_000_000}},
		"SET k v EXAT 1800000000 XX":     {When: IfPresent, Expiry: Expiry{Kind: At, MS: 1_800_000_000_000}},
		"SET k v KEEPTTL GET":            {Expiry: Expiry{Kind: KeepExpiry}, Get: true},
		"SET k v PX 20000 IFEQ v0":       {When: IfEqual, Operand: "v0", Expiry: after(20_000)},
		"SET k v IFEQ NX PX 7":           {When: IfEqual, Operand: "NX", Expiry: after(7)},
		"SET k v ifne v0 PX 7":           {When: IfNotEqual, Operand: "v0", Expiry: after(7)},
		"SET k v IFDEQ 9555E8555C62DCFD": {When: IfDigestEqual, Operand: "9555E8555C62DCFD"},
		"SET k v IFDNE 9555e8555c62dcfd": {When: IfDigestNotEqual, Operand: "9555e8555c62dcfd"},
		"SET k v PX 9223372036854775807": {Expiry: after(math.MaxInt64)},
		"SET k v NX PX 31600000000000":   {When: IfAbsent, Expiry: after(31_600_000_000_000)},
		"SET k v EX 9223372036854775":    {Expiry: after(9223372036854775000)},
	} {
		want.Key, want.Value = "k", "v"
		got, err := ParseSet(strings.Fields(line))
		if err != nil || got != want {
			t.Errorf("%s: %+v %v, want %+v", line, got, err, want)
		}
	}
}

func TestParseSet_RefusesInTheWordsOfRedis(t *testing.T) {
	for line, want := range map[string]string{
		"SET k":                          "wrong number of arguments for 'set' command",
		"SET k v NX XX":                  "syntax error",
		"SET k v IFEQ a NX":              "syntax error",
		"SET k v IFEQ a IFEQ b":          "syntax error",
		"SET k v IFEQ":                   "syntax error",
		"SET k v IFDNE":                  "syntax error",
		"SET k v IFEQ a IFNE b":          "syntax error",
		"SET k v XX IFDEQ b":             "syntax error",
		"SET k v IFDEQ 123":              "must be exactly 16 hexadecimal characters",
		"SET k v IFDNE 123 PX x":         "value is not an integer or out of range",
		"SET k v PX":                     "syntax error",
		"SET k v PX 1 EX 1":              "syntax error",
		"SET k v KEEPTTL PX 1":           "syntax error",
		"SET k v PX x bogus":             "syntax error",
		"SET k v ıfeq a":                 "syntax error",
		"SET k v PX x":                   "value is not an integer or out of range",
		"SET k v PX 07":                  "value is not an integer or out of range",
		"SET k v PX +7":                  "value is not an integer or out of range",
		"SET k v PX 9223372036854775808": "value is not an integer or out of range",
		"SET k v PX 0":                   "invalid expire time in 'set' command",
		"SET k v EX -1":                  "invalid expire time in 'set' command",
		"SET k v EX 9223372036854776":    "invalid expire time in 'set' command",
	} {
		if _, err := ParseSet(strings.Fields(line)); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
}

func TestParseDelete_ReadsEverySpelling(t *testing.T) {
	for line, want := range map[string]DeleteRequest{
		"DELEX k IFEQ v":                 {Key: "k", When: IfEqual, Operand: "v"},
		"delex k ifeq v":                 {Key: "k", When: IfEqual, Operand: "v"},
		"DELIFEQ k v":                    {Key: "k", When: IfEqual, Operand: "v"},
		"DELEX k":                        {Key: "k"},
		"DELEX k IfNe v":                 {Key: "k", When: IfNotEqual, Operand: "v"},
		"DELEX k IFDEQ 9555e8555c62dcfd": {Key: "k", When: IfDigestEqual, Operand: "9555e8555c62dcfd"},
		"DELEX k IFDNE zzzzzzzzzzzzzzzz": {Key: "k", When: IfDigestNotEqual, Operand: "zzzzzzzzzzzzzzzz"}, // Redis checks the length alone
	} {
		if got, err := ParseDelete(strings.Fields(line)); err != nil || got != want {
			t.Errorf("%s: %+v %v, want %+v", line, got, err, want)
		}
	}
	for line, want := range map[string]string{
		"DELEX k IFEQ v x": "wrong number of arguments for 'delex' command",
		"DELEX k IFEQ":     "wrong number of arguments for 'delex' command",
		"DELIFEQ k":        "wrong number of arguments for 'delifeq' command",
		"DELIFEQ k v w":    "wrong number of arguments for 'delifeq' command",
		"DELEX k NX v":     "Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE",
		"DELEX k IFDEQ 12": "must be exactly 16 hexadecimal characters",
	} {
		if _, err := ParseDelete(strings.Fields(line)); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
}

func TestParseSetMany_ReadsPairsAndOptions(t *testing.T) {
	got, err := ParseSetMany(strings.Fields("msetex 2 a NX b EX nx px 500"))
	want := SetManyRequest{Keys: []string{"a", "b"}, Values: []string{"NX", "EX"}, When: IfAbsent, Expiry: Expiry{Kind: After, MS: 500}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v %v, want %+v", got, err, want)
	}
	for line, want := range map[string]string{
		"MSETEX 1 a":             "wrong number of arguments for 'msetex' command",
		"MSETEX a 1 EX 10":       "invalid numkeys value",
		"MSETEX 0 a 1":           "invalid numkeys value",
		"MSETEX 2147483648 a 1":  "invalid numkeys value",
		"MSETEX 2147483647 a 1":  "wrong number of key-value pairs",
		"MSETEX 2 a 1 b":         "wrong number of key-value pairs",
		"MSETEX 1 a 1 bogus":     "syntax error",
		"MSETEX 1 a 1 NX XX":     "syntax error",
		"MSETEX 1 a 1 EX 5 PX 5": "syntax error",
		"MSETEX 1 a 1 GET":       "syntax error",
		"MSETEX 1 a 1 IFEQ x":    "syntax error",
		"MSETEX 1 a 1 EX 0":      "invalid expire time in 'msetex' command",
		"MSETEX 1 a 1 EX x":      "value is not an integer or out of range",
	} {
		if _, err := ParseSetMany(strings.Fields(line)); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
}

// The digests of a Redis 8.4, of its documentation and of its clients' tests.
func TestDigest_IsThatOfRedis(t *testing.T) {
	for value, want := range map[string]string{
		"": "2d06800538d394c2", "hello": "9555e8555c62dcfd", "123": "404a763b3f4c8c9a", "v8": "0cc76dbb41381419", "Hello world": "b6acb9d84a38ff74",
	} {
		if got := Digest(value); got != want {
			t.Errorf("%q: %s, want %s", value, got, want)
		}
	}
	const digest = "9555e8555c62dcfd"
	for when, want := range map[Condition]bool{IfDigestEqual: true, IfDigestNotEqual: false} {
		for _, operand := range []string{digest, strings.ToUpper(digest)} {
			if when.Holds("hello", operand) != want || when.Holds("other", operand) == want {
				t.Errorf("condition %d with %s", when, operand)
			}
		}
	}
	if !IfEqual.Holds("a", "a") || IfEqual.Holds("a", "b") || IfNotEqual.Holds("a", "a") || !IfNotEqual.Holds("a", "b") || Always.Holds("a", "a") {
		t.Error("values are compared wrongly")
	}
}
