package pool

import (
	"strings"
	"testing"
	"time"

	"redlockd/pool/admission"
)

func testOptions() *Options {
	return &Options{
		Group: "blue", MaxTTL: time.Minute, MaxKeep: time.Hour,
		Masters: []Master{{Name: "a"}, {Name: "b"}, {Name: "c"}},
	}
}

func TestFingerprint_DependsOnEverySettingAndOnNoOrder(t *testing.T) {
	base := testOptions().settings(0)
	shuffled := testOptions()
	shuffled.Masters = []Master{{Name: "c"}, {Name: "a"}, {Name: "b"}}
	if shuffled.settings(0) != base {
		t.Error("the order of the masters matters")
	}
	moved := testOptions()
	moved.Masters[0].Address, moved.Masters[0].Password = "elsewhere:1", "secret"
	if moved.settings(0) != base {
		t.Error("addresses or passwords matter: the same master may be reached in several ways")
	}
	for name, change := range map[string]func(*Options){
		"group":                              func(o *Options) { o.Group = "green" },
		"max-ttl":                            func(o *Options) { o.MaxTTL += time.Millisecond },
		"max-keep":                           func(o *Options) { o.MaxKeep += time.Millisecond },
		"key prefixes":                       func(o *Options) { o.Prefixes = []string{o.KeyPrefix, "jobs:"} },
		"slots is all here and 0-8191 there": func(o *Options) { o.Slots = "0-8191" },
		"list of masters":                    func(o *Options) { o.Masters[2].Name = "d" },
		"or key prefixes differs":            func(o *Options) { o.Masters = append(o.Masters, Master{Name: "d"}, Master{Name: "e"}) },
	} {
		o := testOptions()
		change(o)
		other := o.settings(0)
		if other == base {
			t.Errorf("%s does not matter", name)
		}
		if text := admission.Difference(base, other); !strings.Contains(text, name) || strings.Contains(text, ", ") {
			t.Errorf("%s: difference %q, want it alone to be named", name, text)
		}
	}
	other := testOptions().settings(3)
	if got := admission.Difference(base, other); got != "db is 0 here and 3 there" {
		t.Errorf("difference %q", got)
	}
}

func TestFingerprint_TheDifferenceNamesEveryFieldThatDiffers(t *testing.T) {
	a, b := testOptions(), testOptions()
	b.Group, b.MaxTTL = "green", 2*time.Minute
	got := admission.Difference(a.settings(0), b.settings(0))
	if got != "group is blue here and green there, max-ttl is 60000 here and 120000 there" {
		t.Errorf("difference %q", got)
	}
	for _, foreign := range []string{"", "other", "a/b/c", strings.Repeat("/", 50)} {
		if got := admission.Difference(a.settings(0), foreign); !strings.Contains(got, "another version") {
			t.Errorf("difference to %q: %q", foreign, got)
		}
	}
}

// A group that begins to be one of several, or a new version, must not meet a text of its own
// that differs: its masters would begin new incarnations.
func TestFingerprint_OfOneGroupIsAsItWasBeforeThereWereSeveral(t *testing.T) {
	const before = "format=v2/group=blue/db=2/max-ttl=60000/max-keep=3600000/masters=3-ea7fb08b7a2dc461/epoch=1-x/master=a"
	o := testOptions()
	if got := o.Fingerprint(2, "1-x", "a"); got != before {
		t.Errorf("%s", got)
	}
	o.Slots = "0-99"
	if got := o.Fingerprint(2, "1-x", "a"); got == before {
		t.Error("slots do not matter")
	}
}
