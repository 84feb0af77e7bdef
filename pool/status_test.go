package pool

// Tests of how a master's configuration compares with the daemon's.

import (
	"testing"

	"redlockd/pool/admission"
)

func TestConfiguration_OfAMasterComparesWithTheDaemons(t *testing.T) {
	of := func(epoch int64, group string, names ...string) *admission.Configuration {
		c := &admission.Configuration{Epoch: epoch, Group: group}
		for _, name := range names {
			c.Masters = append(c.Masters, Master{Name: name})
		}
		return c
	}
	own := of(5, "g", "a", "b", "c")
	is := func(c *admission.Configuration, ours bool) carried {
		return carried{at: 1, Carried: admission.Carried{Fingerprint: "any", Mark: c.Mark(), Ours: ours, Stored: admission.StoredConfiguration{Now: c}}}
	}
	unread := is(of(4, "g", "a", "b"), false)
	unread.Stored.Now = nil
	for _, one := range []struct {
		what  string
		on    carried
		own   string
		epoch int64
		word  string
	}{
		{"the daemon's", is(own, true), own.Mark(), 5, "current"},
		{"an earlier list", is(of(4, "g", "a", "b", "x"), false), own.Mark(), 4, "stale"},
		{"the daemon's list in an earlier epoch", is(of(4, "g", "a", "b", "c"), true), own.Mark(), 4, "stale"},
		{"a later list", is(of(6, "g", "a", "b", "x"), false), own.Mark(), 6, "newer"},
		{"a later list without it", is(of(6, "g", "b", "c", "x"), false), own.Mark(), 6, "left"},
		{"a change that lost", is(of(5, "g", "a", "b", "x"), false), own.Mark(), 5, "other"},
		{"another group", is(of(9, "h", "a", "b", "c"), false), own.Mark(), 9, "other"},
		{"a text that cannot be read", unread, own.Mark(), 4, "other"},
		{"nothing", carried{at: 1}, own.Mark(), 0, "none"},
		{"not looked at", carried{}, own.Mark(), 0, ""},
		{"the daemon's is not known", is(own, true), "", 5, ""},
	} {
		if epoch, word := one.on.compare(one.own, "g", "a"); epoch != one.epoch || word != one.word {
			t.Errorf("%s: %d %q, want %d %q", one.what, epoch, word, one.epoch, one.word)
		}
	}
}
