package pool

import (
	"errors"
	"strings"
	"testing"
)

func TestDaemonsDue_MoreDaemonsReadTheListLessOften(t *testing.T) {
	two, many := text("id=1 name=x\nid=2 name=y\n"), text(strings.Repeat("id=1 name=redlockd-x/g/1 user=default\n", 3))
	for _, c := range []struct {
		name string
		list Reply
		next int // readings until the list is read again, 0 = never
	}{
		{"few daemons", two, minDaemonsEvery + 1},
		{"several connections of one", many, minDaemonsEvery + 1},
		{"not allowed", refusal("NOPERM no"), 0},
	} {
		var due daemonsDue
		if !due.next() {
			t.Fatalf("%s: the first reading has no list", c.name)
		}
		if _, ok := due.read(c.list, "g"); ok != (c.next > 0) {
			t.Errorf("%s: read %v", c.name, ok)
		}
		n := 1
		for ; n < 100 && !due.next(); n++ {
		}
		if c.next > 0 && n != c.next || c.next == 0 && n < 100 {
			t.Errorf("%s: reading %d has the list, want %d", c.name, n, c.next)
		}
	}
}

func TestReadings_ShowWhatMayHaveBeenEvicted(t *testing.T) {
	stats := func(evicted, commands string) Reply {
		return text("evicted_keys:" + evicted + "\r\ntotal_commands_processed:" + commands + "\r\n")
	}
	policy := func(name string) Reply { return list(text("maxmemory-policy"), text(name)) }
	for _, c := range []struct {
		name          string
		policy, stats Reply
		evicted       bool
		commands      int64 // that are stored
	}{
		{"nothing", policy("noeviction"), stats("3", "80"), false, 80},
		{"another policy", policy("allkeys-lru"), stats("3", "80"), true, 70},
		{"evicted keys", policy("noeviction"), stats("4", "80"), true, 70},
		{"statistics that were reset", policy("noeviction"), stats("3", "60"), true, 60},
		{"CONFIG is forbidden", refusal("NOPERM no"), stats("3", "80"), false, 80},
		{"INFO is forbidden", policy("noeviction"), refusal("NOPERM no"), false, 70},
	} {
		f := &flush{}
		f.reset()
		f.context.Incarnation = &Incarnation{Evicted: "3"}
		commands := int64(70)
		if err := f.evicted(&commands); err != nil || commands != 70 {
			t.Fatalf("a flush without readings: %v, %d", err, commands)
		}
		f.settingsAt, f.replies = 0, []Reply{{}, {}, c.policy, c.stats}
		if err := f.evicted(&commands); errors.Is(err, errEvicted) != c.evicted || commands != c.commands {
			t.Errorf("%s: %v with %d commands, want an eviction: %v, and %d", c.name, err, commands, c.evicted, c.commands)
		}
	}
}
