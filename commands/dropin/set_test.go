package dropin

import (
	"math"
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
		"SET k v PX 20000 IFEQ v0":       {When: IfEqual, Equal: "v0", Expiry: after(20_000)},
		"SET k v IFEQ NX PX 7":           {When: IfEqual, Equal: "NX", Expiry: after(7)},
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

func TestParseDeleteIfEqual_ReadsBothSpellings(t *testing.T) {
	for _, line := range []string{"DELEX k IFEQ v", "delex k ifeq v", "DELIFEQ k v"} {
		if got, err := ParseDeleteIfEqual(strings.Fields(line)); err != nil || got != (DeleteRequest{Key: "k", Equal: "v"}) {
			t.Errorf("%s: %+v %v", line, got, err)
		}
	}
	for _, line := range []string{"DELEX k", "DELEX k IFNE v", "DELEX k IFEQ v x", "DELIFEQ k", "DELIFEQ k v w"} {
		if _, err := ParseDeleteIfEqual(strings.Fields(line)); err == nil {
			t.Errorf("%s is read", line)
		}
	}
}
