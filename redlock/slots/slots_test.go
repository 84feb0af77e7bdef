package slots

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"redlockd/pool/faulty"
)

// The vectors are of the specification of Redis Cluster and of the catalogue of CRCs.
func TestSlotsOfPublishedVectors(t *testing.T) {
	for name, want := range map[string]int{
		"123456789":                0x31C3,
		"":                         0,
		"foo":                      12182,
		"bar":                      5061,
		"{user1000}.following":     Of("user1000"),
		"{user1000}.followers":     Of("user1000"),
		"foo{}{bar}":               8363, // an empty tag is none
		"foo{{bar}}zap":            Of("{bar"),
		"foo{bar}{zap}":            5061,
		"}foo{bar}":                5061,
		"\x00{\xff\x00}whatever{a": Of("\xff\x00"),
	} {
		if got := Of(name); got != want {
			t.Errorf("slot of %q = %d, want %d", name, got, want)
		}
	}
}

func TestSlotsAreThoseOfRedis(t *testing.T) {
	server := faulty.Start(t, "--cluster-enabled", "yes")
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		name := make([]byte, random.IntN(24))
		for i := range name {
			name[i] = "{}{}ab\x00\xff:\r\n7"[random.IntN(12)]
		}
		want, err := server.Do("CLUSTER", "KEYSLOT", string(name))
		if err != nil {
			t.Fatal(err)
		}
		if got := strconv.Itoa(Of(string(name))); got != fmt.Sprint(want) {
			t.Fatalf("slot of %q = %s, redis-server has %v", name, got, want)
		}
	}
}

func TestRangesAreReadAndWritten(t *testing.T) {
	for text, want := range map[string]string{
		"0-16383":                 "0-16383",
		"7":                       "7",
		"300-400, 0-99,200":       "0-99,200,300-400",
		"0-9,10-19,21":            "0-19,21",
		"5-5":                     "5",
		" none ":                  "none",
		"none,5":                  `slots "none,5": "none" is not a slot: give ranges of 0 to 16383, such as 0-8191 or 0-99,200-300`,
		"16383":                   "16383",
		"":                        `slots "": "" is not a slot: give ranges of 0 to 16383, such as 0-8191 or 0-99,200-300`,
		"0-16384":                 `slots "0-16384": "16384" is not a slot: give ranges of 0 to 16383, such as 0-8191 or 0-99,200-300`,
		"-1":                      `slots "-1": "" is not a slot: give ranges of 0 to 16383, such as 0-8191 or 0-99,200-300`,
		"9-3":                     `slots "9-3": "9-3" ends before it begins`,
		"0-10,5-7":                `slots "0-10,5-7": 5-7 is given twice`,
		"1,1":                     `slots "1,1": 1 is given twice`,
		"1,,2":                    `slots "1,,2": "" is not a slot: give ranges of 0 to 16383, such as 0-8191 or 0-99,200-300`,
		"0x10":                    `slots "0x10": "0x10" is not a slot: give ranges of 0 to 16383, such as 0-8191 or 0-99,200-300`,
		"99999999999999999999999": `slots "99999999999999999999999": "99999999999999999999999" is not a slot: give ranges of 0 to 16383, such as 0-8191 or 0-99,200-300`,
	} {
		ranges, err := Parse(text)
		got := ranges.String()
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("Parse(%q) = %s, want %s", text, got, want)
		}
	}
	if n := All().Len(); n != Count {
		t.Errorf("all slots are %d, want %d", n, Count)
	}
}

func TestRanges_AsSets(t *testing.T) {
	set := func(text string) Ranges {
		ranges, err := ParseOwned(text)
		if err != nil {
			t.Fatal(err)
		}
		return ranges
	}
	for _, c := range []struct {
		a, b, plus, minus, and string
		contains               bool
	}{
		{"0-9", "10-19", "0-19", "0-9", "none", false},
		{"0-19,30", "5-9,30", "0-19,30", "0-4,10-19", "5-9,30", true},
		{"", "16383", "0-16383", "0-16382", "16383", true},
		{"none", "3", "3", "none", "none", false},
		{"3", "none", "3", "3", "none", true},
		{"none", "none", "none", "none", "none", true},
		{"5-6", "6-7", "5-7", "5", "6", false},
	} {
		a, b := set(c.a), set(c.b)
		if plus, minus, and := a.Plus(b).String(), a.Minus(b).String(), a.And(b).String(); plus != c.plus || minus != c.minus || and != c.and || a.Contains(b) != c.contains {
			t.Errorf("%q and %q: plus %s, minus %s, and %s, contains %v", c.a, c.b, plus, minus, and, a.Contains(b))
		}
	}
	if some := set("0,7-9"); !some.Has(0) || !some.Has(7) || !some.Has(9) || some.Has(1) || some.Has(10) || set("none").Has(0) {
		t.Error("Has")
	}
}

func TestEverySlotHasOneOwner(t *testing.T) {
	owners := func(a, b string) []Owner {
		first, _ := Parse(a)
		second, _ := Parse(b)
		return []Owner{{"a", first}, {"b", second}}
	}
	table, err := NewTable(owners("0-8000,9000-16383", "8001-8999"))
	if err != nil {
		t.Fatal(err)
	}
	for slot, want := range map[int]uint16{0: 0, 8000: 0, 8001: 1, 8999: 1, 9000: 0, 16383: 0} {
		if table[slot] != want {
			t.Errorf("the owner of %d is %d, want %d", slot, table[slot], want)
		}
	}
	for _, c := range []struct{ a, b, want string }{
		{"0-8191", "8193-16383", "slots 8192 belong to no group"},
		{"1-8191", "8192-16000", "slots 0,16001-16383 belong to no group"},
		{"0-8191", "8000-16383", "slots 8000-8191 belong to the groups a and b"},
		{"0-16383", "0,5-6", "slots 0 belong to the groups a and b\nslots 5-6 belong to the groups a and b"},
	} {
		if _, err := NewTable(owners(c.a, c.b)); err == nil || err.Error() != c.want {
			t.Errorf("NewTable(%s; %s) = %v, want %s", c.a, c.b, err, c.want)
		}
	}
}
