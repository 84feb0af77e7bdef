package commands_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"redlockd/commands"
	"redlockd/commands/access"
	"redlockd/pool"
	"redlockd/redlock/slots"
)

// stats are the lines of one section of INFO, by name.
func (c *conversation) stats(section string) map[string]string {
	c.t.Helper()
	values := make(map[string]string)
	for _, line := range strings.Split(c.start("INFO", section).read(c.t).Text, "\r\n") {
		if name, value, ok := strings.Cut(line, ":"); ok {
			values[name] = value
		}
	}
	return values
}

func (c *conversation) wantStats(section string, want map[string]string) {
	c.t.Helper()
	got := c.stats(section)
	for name, value := range want {
		if got[name] != value {
			c.t.Errorf("%s:%s, want %s", name, got[name], value)
		}
	}
}

func TestINFO_CountsLoginsThatWereRefused(t *testing.T) {
	c, users := guarded(t, access.Everything("default", "pw"), low())
	now := time.Now()
	users.Now = func() time.Time { return now }
	reader := *c
	reader.client = &commands.Client{Host: "10.0.0.2", Proto: 2}
	reader.say("AUTH pw")
	reader.wantStats("stats", map[string]string{"acl_access_denied_auth": "0", "throttled_auths": "0"})
	for _, line := range []string{"AUTH x", "AUTH nobody pw", "HELLO 3 AUTH low x"} {
		c.say(line)
	}
	reader.wantStats("stats", map[string]string{"acl_access_denied_auth": "3", "throttled_auths": "0"})
	for range 10 { // the limit of an address
		c.client = &commands.Client{Host: "10.0.0.9", Proto: 2}
		c.say("AUTH x")
	}
	reader.wantStats("stats", map[string]string{"acl_access_denied_auth": "13", "throttled_auths": "1"})
	now = now.Add(time.Second)
	c.say("AUTH pw")
	reader.wantStats("stats", map[string]string{"acl_access_denied_auth": "13", "throttled_auths": "1"})
}

func TestINFO_CountsNoLoginsWithoutUsers(t *testing.T) {
	c := newConversation(t)
	c.say("AUTH x")
	c.wantStats("stats", map[string]string{"acl_access_denied_auth": "0", "throttled_auths": "0"})
}

// laneCounts are figures of a daemon that counts what its lanes do.
type laneCounts struct {
	fakeFigures
	counts pool.Counters
}

func (l *laneCounts) MasterCounters() pool.Counters { return l.counts }

// Every figure has a name in INFO or a metric, and no name stands twice.
func TestFigures_HaveNamesOfTheirOwn(t *testing.T) {
	names, snapshot := map[string]bool{}, (&commands.Deps{Masters: &laneCounts{}, Cluster: division, Clients: func() commands.ClientCounts { return commands.ClientCounts{} }, Traces: func() commands.TraceCounts { return commands.TraceCounts{} }}).Snapshot()
	for i := range commands.Figures {
		f := &commands.Figures[i]
		for _, name := range []string{f.Info, f.Metric} {
			if name != "" && names[name] {
				t.Errorf("%s is there twice", name)
			}
			names[name] = true
		}
		if f.Info+f.Metric == "" || (f.Metric == "") != (f.Help == "") {
			t.Errorf("%q %q has no name, or a help text without a metric: %q", f.Info, f.Metric, f.Help)
		}
		if _, ok := f.Number(&snapshot); ok != (f.Metric != "") {
			t.Errorf("%q %q: a number %v", f.Info, f.Metric, ok)
		}
		if counts := strings.HasSuffix(f.Metric, "_total"); f.Metric != "" && counts == f.Gauge {
			t.Errorf("%s: gauge is %v", f.Metric, f.Gauge)
		}
	}
}

func TestINFO_ShowsWhatTheLanesDid(t *testing.T) {
	c := newConversation(t)
	c.table = newTable(commands.Deps{Masters: &laneCounts{counts: pool.Counters{
		Flushes: 8, Commands: 50, Seals: 3, VoidSeals: 4, LateFlushes: 5, LateReads: 14, BreakerOpened: 6,
		Dials: 7, Admissions: 9, NewIncarnations: 10, Panics: 11, Invalidated: 12, StepsTolerated: 13,
	}}})
	c.wantStats("masters", map[string]string{
		"flushes": "8", "flushed_operations": "50", "operations_per_flush": "6.25", "seals": "3", "void_seals": "4",
		"late_flushes": "5", "late_reads": "14", "breakers_opened": "6", "dials": "7", "admissions": "9", "new_incarnations": "10",
		"lane_panics": "11", "incarnations_invalidated": "12", "clock_steps_tolerated": "13", "masters": "2", "masters_voting": "1",
	})
	c.serve(commands.Deps{Masters: &laneCounts{}})
	c.wantStats("masters", map[string]string{"flushes": "0", "operations_per_flush": "0.00"})
}

func TestFigures_CountSlotsWhoseMoveIsNotFinished(t *testing.T) {
	deps := commands.Deps{Masters: &laneCounts{}, Clients: func() commands.ClientCounts { return commands.ClientCounts{} }, Slots: func() []slots.Served {
		return []slots.Served{
			{Range: slots.Range{First: 0, Last: 10}, Frozen: true, Rest: time.Second},
			{Range: slots.Range{First: 11, Last: 30}, Frozen: true},
			{Range: slots.Range{First: 31, Last: 16383}},
		}
	}}
	s := deps.Snapshot()
	i := slices.IndexFunc(commands.Figures, func(f commands.Figure) bool { return f.Metric == "redlockd_slots_unfinished" })
	if n, shown := commands.Figures[i].Number(&s); n != 20 || !shown {
		t.Errorf("%v slots, shown %t", n, shown)
	}
}
