package redlock

// ids_durability_test.go: an id is given only by masters that have it on disk, unless the
// operator switched this off.

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// notDurable wants ids to be refused because of these masters.
func notDurable(t *testing.T, d *daemon, durable int, masters string, words ...string) {
	t.Helper()
	got, err := d.ids("n", 1)
	var volatile *NotDurable
	if !errors.As(err, &volatile) {
		t.Fatalf("id %d, %v, want NotDurable", got, err)
	}
	if volatile.Durable != durable {
		t.Errorf("%v: want %d durable masters", err, durable)
	}
	for _, m := range masters {
		words = append(words, string(m)+" has ")
	}
	for _, word := range append(words, "appendfsync always", "--ids-durability=off") {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("NotDurable says %q, want it to name %q", err, word)
		}
	}
}

func TestIDs_AreRefusedByMastersThatMayForgetThem(t *testing.T) {
	t.Parallel()
	for name, settings := range map[string]struct {
		args []string
		word string
	}{
		"no persistence":    {nil, "appendonly no"},
		"fsync each second": {[]string{"--appendonly", "yes", "--appendfsync", "everysec"}, "appendfsync everysec"},
		"no fsync while rewriting": {[]string{"--appendonly", "yes", "--appendfsync", "always", "--no-appendfsync-on-rewrite", "yes"},
			"no-appendfsync-on-rewrite yes"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newCluster(t, 3, long, settings.args...).daemon()
			notDurable(t, d, 0, "abc", settings.word)
			if got := d.volatileIDs().draw("n", 1); got < 1 {
				t.Errorf("id %d by the operator's word", got)
			}
		})
	}
}

func TestIDs_SurviveTheCrashOfAllDurableMasters(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long, durable...)
	one := c.daemon()
	last := one.draw("n", 1000) + 999
	for _, s := range c.servers {
		s.Kill()
	}
	for _, s := range c.servers {
		s.Restart()
	}
	two := c.daemon()
	for i := range c.servers {
		one.awaitProcess(i, c.servers[i])
	}
	for range 5 {
		for _, d := range []*daemon{two, one} {
			got := d.draw("n", 1)
			if got <= last {
				t.Fatalf("id %d after id %d, across a crash of all masters", got, last)
			}
			last = got
		}
	}
}

// The settings are read once a second; an incarnation that was volatile once stays so.
func TestIDs_StopWhenDurabilityIsSwitchedOffAtRunTime(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long, durable...)
	d := c.daemon()
	last := d.draw("n", 1)
	c.do(0, "CONFIG", "SET", "appendfsync", "everysec")
	eventually(t, "a is known to be volatile", func() bool { return !d.Masters(0)[0].Durable })
	d.await(0, "voting") // on locks
	if got := d.draw("n", 1); got <= last {
		t.Fatalf("id %d after id %d", got, last)
	}
	d.free("k", d.take("k", 10*time.Second).Token)

	c.do(1, "CONFIG", "SET", "appendonly", "no")
	eventually(t, "b is known to be volatile", func() bool { return !d.Masters(0)[1].Durable })
	d.await(1, "voting")
	notDurable(t, d, 1, "ab")
	c.do(0, "CONFIG", "SET", "appendfsync", "always")
	notDurable(t, d, 1, "ab")
}
