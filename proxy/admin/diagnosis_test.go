package admin

import (
	"strings"
	"testing"
	"time"

	"redlockd/pool"
	"redlockd/redlock"
)

func master(name, state, detail string, since time.Duration) redlock.MasterReport {
	return redlock.MasterReport{Status: pool.Status{Name: name, State: state, Detail: detail, Since: since}}
}

func diagnosed(reports []redlock.MasterReport, quorum int, list ...stuckKey) (level, text string) {
	gone := outages{}
	gone.note(reports, noon)
	h := diagnose(reports, gone, quorum, list, noon)
	return h.Level, strings.Join(h.Lines, "\n")
}

func TestDiagnosis_NamesEveryMasterThatCannotVoteAndWhy(t *testing.T) {
	voting := master("m1", "voting", "", time.Hour)
	young := master("m4", "quarantined", "its memory is new, votes in 83.2s", time.Minute)
	young.Left = 83200 * time.Millisecond
	for _, c := range []struct {
		reports []redlock.MasterReport
		level   string
		says    []string
	}{
		{[]redlock.MasterReport{voting, voting, voting}, levelGood, []string{"All 3 masters vote."}},
		{[]redlock.MasterReport{voting, master("m2", "down", "connection refused, 12s ago", 12*time.Second), voting}, levelWarn, []string{
			"1 of 3 masters cannot vote: m2 stopped answering 12 s ago (connection refused).", "2 vote and 2 are needed. None may fail any more.",
		}},
		{[]redlock.MasterReport{voting, voting, voting, young, voting}, levelWarn, []string{
			"m4 is quarantined 83 s more (its memory is new)", "One more may fail.",
		}},
		{[]redlock.MasterReport{voting, master("m2", "refused", "is a replica", 3*time.Minute), master("m3", "failing", "OOM", time.Second)}, levelBad, []string{
			"No lock can be granted: 1 of 3 masters can vote, 2 are needed: m2 has been refused for 3 min (is a replica), m3 answers but refuses to write (OOM).",
		}},
		{[]redlock.MasterReport{voting, master("m2", "dialing", "", time.Second), master("m3", "suspect", "its clock does not fit", 0)}, levelBad, []string{
			"m2 is being dialled, m3 is suspect: its votes do not count (its clock does not fit)",
		}},
	} {
		level, text := diagnosed(c.reports, len(c.reports)/2+1)
		if level != c.level {
			t.Errorf("level %s, want %s: %s", level, c.level, text)
		}
		for _, says := range c.says {
			if !strings.Contains(text, says) {
				t.Errorf("%q does not say %q", text, says)
			}
		}
	}
}

// A master that is gone is dialled again and again: that is no change.
func TestDiagnosis_RemembersSinceWhenAndWhyWhileItIsDialled(t *testing.T) {
	gone := outages{}
	gone.note([]redlock.MasterReport{master("m2", "down", "connection refused, 1s ago", time.Second)}, noon)
	later := noon.Add(time.Minute)
	dialled := []redlock.MasterReport{master("m1", "voting", "", 0), master("m2", "dialing", "", 0), master("m3", "voting", "", 0)}
	gone.note(dialled, later)
	if text := diagnose(dialled, gone, 2, nil, later).Lines[0]; !strings.Contains(text, "m2 stopped answering 61 s ago (connection refused)") {
		t.Error(text)
	}
	gone.note([]redlock.MasterReport{master("m2", "voting", "", 0)}, later)
	if len(gone) != 0 {
		t.Errorf("it votes again: %v", gone)
	}
}

func TestDiagnosis_NamesTheKeysThatAreWaitedForLongest(t *testing.T) {
	voting := []redlock.MasterReport{master("m1", "voting", "", 0)}
	level, text := diagnosed(voting, 1,
		stuckKey{key: "b", longest: 20 * time.Second, waiting: 1},
		stuckKey{key: "invoices", held: 4 * time.Minute, exactly: true, by: "worker-7 (10.0.0.9:1)", longest: 3 * time.Minute, waiting: 3},
		stuckKey{key: "c", held: time.Hour, by: "token 12345678", longest: 15 * time.Second, waiting: 1},
		stuckKey{key: "d", longest: 11 * time.Second}, stuckKey{key: "e", longest: 10 * time.Second})
	want := "All 1 masters vote.\n" +
		"Key invoices has been held 4 min by worker-7 (10.0.0.9:1) with 3 waiting, the first for 3 min.\n" +
		"Key b is not held by a client on any master, with 1 waiting, the first for 20 s.\n" +
		"Key c has been held at least 60 min by token 12345678 with 1 waiting, the first for 15 s.\n" +
		"2 more keys have been waited for longer than 10 s."
	if level != levelWarn || text != want {
		t.Errorf("%s\n%s\nwant\n%s", level, text, want)
	}
}

func TestCharts_ShowWhatHappenedBetweenTwoLooks(t *testing.T) {
	var c charts
	var slow latencyCounts
	trips := pool.Histogram{}
	note := func(seconds int, acquired int64) {
		c.note(sample{
			at: noon.Add(time.Duration(seconds) * time.Second), counts: redlock.Counters{Acquired: acquired, NoQuorum: acquired / 10},
			locks: slow.load(), masters: map[string]pool.Histogram{"a": trips},
		})
	}
	note(0, 1000)
	if len(c.Granted) != 0 {
		t.Errorf("one sample is no rate: %v", c.Granted)
	}
	note(2, 1500)
	slow.note(3 * time.Millisecond)
	trips.Counts[len(trips.Counts)-1] = 1
	note(3, 1600)
	if c.Granted[0] != 250 || c.Granted[1] != 100 || c.Undecided[1] != 10 {
		t.Errorf("rates %v and %v", c.Granted, c.Undecided)
	}
	if c.P99[0] != noValue || c.P99[1] < 3000 || c.P99[1] > 3750 {
		t.Errorf("p99 %v, want none and 3 ms or up to a quarter more", c.P99)
	}
	if got := c.masters["a"]; got[0] != noValue || got[1] < 1_000_000 {
		t.Errorf("round trips %v", got)
	}
	for i := range 2 * maxPoints {
		note(4+i, 1600)
	}
	if len(c.Granted) != maxPoints || len(c.masters["a"]) != maxPoints {
		t.Errorf("%d points, %d of the master", len(c.Granted), len(c.masters["a"]))
	}
}

func TestEventRing_ReportsWhatItHasOverwritten(t *testing.T) {
	var n eventRing
	for i := range 10 {
		n.add(redlock.Event{Fence: redlock.Fence(i + 1)})
	}
	if events, last, missed := n.after(7); len(events) != 3 || events[0].Fence != 8 || last != 10 || missed != 0 {
		t.Errorf("%d events, last %d, missed %d", len(events), last, missed)
	}
	for i := range 2 * maxEvents {
		n.add(redlock.Event{Fence: redlock.Fence(i + 11)})
	}
	events, last, missed := n.after(10)
	if len(events) != maxEvents || events[0].Fence != maxEvents+11 || last != 2*maxEvents+10 || missed != maxEvents {
		t.Errorf("%d events from %d, last %d, missed %d", len(events), events[0].Fence, last, missed)
	}
	if events, _, missed := n.after(last); len(events) != 0 || missed != 0 {
		t.Errorf("nothing is new, and there are %d events, missed %d", len(events), missed)
	}
}
