package pool

import (
	"strings"
	"testing"
	"time"
)

func testOptions() *Options {
	return &Options{
		Group: "blue", MaxTTL: time.Minute, MaxKeep: time.Hour,
		Masters: []Master{{Name: "a"}, {Name: "b"}, {Name: "c"}},
	}
}

func TestIdentity_ReadsWhatTheAdmissionScriptWrites(t *testing.T) {
	l, err := parseIdentity("abc 0123 1700000000000000 1 format=v1/group=a b/db=0")
	if err != nil || l.RunID != "abc" || l.ID != "0123" || l.Base != 1_700_000_000_000_000 || !l.Durable {
		t.Errorf("%+v, %v", l, err)
	}
	if l, err := parseIdentity("abc 0123 0 0 print"); err != nil || l.Durable || l.Base != 0 {
		t.Errorf("%+v, %v", l, err)
	}
	if l, err := parseIdentity("abc:17 0123 0 0 print"); err != nil || l.RunID != "abc" || l.Evicted != "17" {
		t.Errorf("%+v, %v", l, err)
	}
	for _, bad := range []string{"", "retired", "a b c d", "a b c d e", "a b 1.5 0 e", "a b 99999999999999999999 0 e"} {
		if l, err := parseIdentity(bad); err == nil {
			t.Errorf("parseLife(%q) = %+v, want an error", bad, l)
		}
	}
}

func TestIdentity_AMemoryVotesOnceItIsOldEnough(t *testing.T) {
	l := &Incarnation{Base: 1_000_000}
	for us, want := range map[int64]bool{1_000_000: false, 2_999_999: false, 3_000_000: true, 3_000_001: true} {
		if got := l.mayVote(us, 2*time.Second); got != want {
			t.Errorf("at %d: %v, want %v", us, got, want)
		}
	}
}

func TestIdentity_TheFingerprintDependsOnEverySettingAndOnNoOrder(t *testing.T) {
	base := fingerprint(testOptions(), 0)
	shuffled := testOptions()
	shuffled.Masters = []Master{{Name: "c"}, {Name: "a"}, {Name: "b"}}
	if fingerprint(shuffled, 0) != base {
		t.Error("the order of the masters matters")
	}
	moved := testOptions()
	moved.Masters[0].Address, moved.Masters[0].Password = "elsewhere:1", "secret"
	if fingerprint(moved, 0) != base {
		t.Error("addresses or passwords matter: the same master may be reached in several ways")
	}
	for name, change := range map[string]func(*Options){
		"group":                 func(o *Options) { o.Group = "green" },
		"max-ttl":               func(o *Options) { o.MaxTTL += time.Millisecond },
		"max-keep":              func(o *Options) { o.MaxKeep += time.Millisecond },
		"list of masters":       func(o *Options) { o.Masters[2].Name = "d" },
		"the list of masters d": func(o *Options) { o.Masters = append(o.Masters, Master{Name: "d"}, Master{Name: "e"}) },
	} {
		o := testOptions()
		change(o)
		other := fingerprint(o, 0)
		if other == base {
			t.Errorf("%s does not matter", name)
		}
		if text := difference(base, other); !strings.Contains(text, name) || strings.Contains(text, ", ") {
			t.Errorf("%s: difference %q, want it alone to be named", name, text)
		}
	}
	other := fingerprint(testOptions(), 3)
	if got := difference(base, other); got != "db is 0 here and 3 there" {
		t.Errorf("difference %q", got)
	}
}

func TestIdentity_TheDifferenceNamesEveryFieldThatDiffers(t *testing.T) {
	a, b := testOptions(), testOptions()
	b.Group, b.MaxTTL = "green", 2*time.Minute
	got := difference(fingerprint(a, 0), fingerprint(b, 0))
	if got != "group is blue here and green there, max-ttl is 60000 here and 120000 there" {
		t.Errorf("difference %q", got)
	}
	for _, foreign := range []string{"", "other", "a/b/c", strings.Repeat("/", 50)} {
		if got := difference(fingerprint(a, 0), foreign); !strings.Contains(got, "another version") {
			t.Errorf("difference to %q: %q", foreign, got)
		}
	}
}
