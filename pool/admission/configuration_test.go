package admission

import (
	"strings"
	"testing"
	"time"

	"redlockd/pool/wire"
)

func someConfiguration(epoch int64) *Configuration {
	return &Configuration{
		Epoch: epoch, Format: "v2", Group: "a group/=@,", Prefixes: []string{"locks: x", "a,b"}, MaxTTL: time.Minute, MaxKeep: time.Hour,
		Masters: []wire.Master{{Name: "a,b", Network: "unix", Address: "/run/a b@c"}, {Name: "c", Network: "tcp", Address: "[::1]:6379"}},
	}
}

func TestConfiguration_HasTheSlotsOfOneOfSeveralGroupsOnly(t *testing.T) {
	all, some := someConfiguration(1), someConfiguration(1)
	some.Slots = "0-99,200"
	if got, err := parseConfiguration(some.String()); err != nil || got.Slots != some.Slots {
		t.Errorf("%+v, %v", got, err)
	}
	if strings.Contains(all.String(), "slots") || all.Mark() == some.Mark() || all.SameSlots(some) || !all.SameSettings(some) {
		t.Errorf("%s and %s", all, some)
	}
	other := someConfiguration(9)
	if other.Masters = nil; !all.SameSettings(other) {
		t.Error("epoch or masters count as settings")
	}
}

func TestConfiguration_HasTheMapOfSlots(t *testing.T) {
	plain, moving := someConfiguration(1), someConfiguration(1)
	plain.Slots, moving.Slots, moving.MapVersion, moving.Leaving, moving.To, moving.LeftAt = "0-99", "0-99", 7, "5,7-9", "g2@ ,", 6
	got, err := parseConfiguration(moving.String())
	if err != nil || got.MapVersion != 7 || got.Leaving != "5,7-9" || got.To != "g2@ ," || got.LeftAt != 6 || got.Mark() != moving.Mark() {
		t.Errorf("%+v, %v", got, err)
	}
	if !strings.HasSuffix(moving.String(), " slots=0-99 map=7 leaving=5%2C7-9@g2%40+%2C@6") || strings.Contains(plain.String(), "map=") || strings.Contains(plain.String(), "leaving") {
		t.Errorf("%s and %s", plain, moving)
	}
	if plain.Mark() == moving.Mark() || !plain.SameSettings(moving) || !plain.SameSlots(moving) {
		t.Errorf("%s and %s", plain, moving)
	}
	if moving.Slots = "none"; plain.SameSlots(moving) || !plain.SameSettings(moving) {
		t.Error("other slots count as settings, or as the same slots")
	}
	for _, bad := range []string{" map=0", " map=x", " leaving=@", " leaving=5", " leaving=5@g", " leaving=5@g@", " leaving=5@g@01", " leaving=5@g@1@2", " map=1 map=1", " leaving=5@g@1 map=1"} {
		if c, err := parseConfiguration(plain.String() + bad); err == nil {
			t.Errorf("%q was read as %+v", bad, c)
		}
	}
}

func TestConfiguration_IsReadAsItIsWritten(t *testing.T) {
	former, now := someConfiguration(7), someConfiguration(8)
	got, err := parseConfiguration(now.String())
	if err != nil || got.String() != now.String() || got.Mark() != now.Mark() || got.Group != now.Group || got.Masters[0] != now.Masters[0] {
		t.Errorf("%+v, %v", got, err)
	}
	if former.Mark() == now.Mark() || EpochOf(now.Mark()) != 8 || EpochOf("") != 0 {
		t.Errorf("marks %s and %s", former.Mark(), now.Mark())
	}
	for _, state := range []bool{true, false} {
		s := ParseStored("17\n" + StoredConfiguration{Now: now, Former: former, InForce: state}.Texts())
		if s.At != 17 || s.Now.Mark() != now.Mark() || s.Former.Mark() != former.Mark() || s.InForce != state {
			t.Errorf("%+v", s)
		}
	}
	if s := ParseStored("17\n" + StoredConfiguration{Now: now, InForce: true}.Texts()); s.Former != nil || !s.InForce {
		t.Errorf("%+v", s)
	}
	for _, bad := range []string{"", "x", "epoch=1", now.String() + " ", "epoch=x" + now.String()[7:]} {
		if c, err := parseConfiguration(bad); err == nil {
			t.Errorf("%q was read as %+v", bad, c)
		}
		if s := ParseStored(bad); s.Now != nil || s.InForce {
			t.Errorf("%q was read as %+v", bad, s)
		}
	}
}

// Of a quorum's mark, of a blank group, and of what replaced this daemon's configuration.
func TestSurvey_FindsTheConfigurationOfTheGroup(t *testing.T) {
	one, two := someConfiguration(1), someConfiguration(2)
	carries := func(of *Configuration, ours, inForce bool) Carried {
		return Carried{Fingerprint: "x", Mark: of.Mark(), Ours: ours, Fresh: true, Stored: StoredConfiguration{Now: of, InForce: inForce}}
	}
	blank, silent := Carried{Fresh: true}, Carried{}
	known := Known{Mark: one.Mark(), Texts: "known"}
	after := func(former *Configuration) Carried {
		c := carries(two, false, false)
		c.Stored.Former = former
		return c
	}
	larger := someConfiguration(1)
	larger.Masters = append(larger.Masters, wire.Master{Name: "z", Network: "tcp", Address: "z:1"})
	for name, c := range map[string]struct {
		survey          Survey
		majority, blank string
		next            bool
	}{
		"a quorum":            {Survey{carries(two, true, true), carries(two, true, false), silent}, two.Mark(), "", false},
		"not in force":        {Survey{carries(two, true, false), carries(two, true, false), blank}, "", "", false},
		"one of three":        {Survey{carries(two, true, true), blank, silent}, "", "", false},
		"one, the rest blank": {Survey{carries(two, true, true), blank, blank}, "", two.Mark(), false},
		"two epochs":          {Survey{carries(two, true, true), carries(one, true, true), blank}, "", "", false},
		"all blank":           {Survey{blank, blank, blank}, "", one.Mark(), false},
		"left behind":         {Survey{carries(two, false, true), carries(two, false, true), carries(one, true, true)}, "", "", true},
		"under a wrong name":  {Survey{carries(two, true, true), carries(two, false, true), silent}, two.Mark(), "", false},
		"after its own list":  {Survey{after(one), after(one), carries(one, true, true)}, "", "", true},
		"after another list":  {Survey{after(larger), after(larger), carries(one, true, true)}, "", "", false}, // of which these are no quorum
		"one other":           {Survey{carries(two, false, true), blank, blank}, "", "", false},
	} {
		if got := c.survey.Majority(2, known).Mark; got != c.majority {
			t.Errorf("%s: the majority has %q, want %q", name, got, c.majority)
		}
		if got := c.survey.Blank(known, someConfiguration(1)).Mark; got != c.blank {
			t.Errorf("%s: the blank group has %q, want %q", name, got, c.blank)
		}
		if got := c.survey.Next(one, 2, 1) != nil; got != c.next {
			t.Errorf("%s: replaced: %v, want %v", name, got, c.next)
		}
	}
}

// What people read they give to a command again.
func TestConfiguration_NamesASocketAsTheOptionsHaveIt(t *testing.T) {
	c := Configuration{Masters: []wire.Master{{Name: "a", Network: "tcp", Address: "10.0.0.1:6379"}, {Name: "b", Network: "unix", Address: "/run/b.sock"}}}
	if got, want := c.Names(), "a=10.0.0.1:6379,b=unix:/run/b.sock"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestSurvey_ALaterConfigurationIsOneInForce(t *testing.T) {
	at := func(epoch int64, inForce bool) Carried {
		return Carried{Stored: StoredConfiguration{Now: &Configuration{Epoch: epoch}, InForce: inForce}}
	}
	for _, c := range []struct {
		survey Survey
		later  int64
	}{
		{Survey{at(1, true), at(1, true), {}}, 0},
		{Survey{at(1, true), at(2, false), at(1, true)}, 0},
		{Survey{at(1, true), at(2, true), at(1, true)}, 2},
		{Survey{at(3, true), at(2, true), at(4, false)}, 3},
	} {
		got := c.survey.Later(1)
		if (got == nil) != (c.later == 0) || got != nil && got.Epoch != c.later {
			t.Errorf("%+v is later, want epoch %d", got, c.later)
		}
	}
}

// The forms of a seal: an identity, and one that was ended, beside the processes of its incarnation.
func TestMayBeOlder_UnlessTheProcessWroteItOrIsDurable(t *testing.T) {
	const volatile, durable, ended = "aa:0 1 7 0 print", "aa:0 1 7 1 print", "retired print"
	for _, c := range []struct {
		seal, processes, run string
		durable, older       bool
	}{
		{volatile, "", "aa", false, false},
		{volatile, "", "bb", false, true},
		{volatile, "bb=1;", "bb", true, true},
		{durable, "", "bb", true, false},
		{durable, "", "bb", false, true},
		{ended, "aa=5;cc=3;", "aa", false, false},
		{ended, "aa=5;cc=3;", "cc", true, true},
		{ended, "", "aa", true, true},
		{"", "", "aa", false, false},
	} {
		if got := MayBeOlder(c.seal, c.processes, c.run, c.durable); got != c.older {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
