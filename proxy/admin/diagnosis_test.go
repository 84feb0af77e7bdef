package admin

import (
	"strings"
	"testing"
	"time"

	"redlockd/pool"
	"redlockd/redlock"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func everything(redlock.Key) bool { return true }

func master(name, state, detail string, since time.Duration) redlock.MasterReport {
	return redlock.MasterReport{Status: pool.Status{Name: name, State: state, Detail: detail, Since: since}}
}

// diagnosed is the headline after polls of a second each; the last one is at noon.
func diagnosed(quorum int, polls ...[]redlock.MasterReport) (level, text string) {
	masters, now := histories{}, noon.Add(-time.Duration(len(polls)-1)*time.Second)
	for _, reports := range polls {
		masters.note(reports, now)
		now = now.Add(time.Second)
	}
	last := polls[len(polls)-1]
	h := diagnose(last, masters, quorum, 0, noon)
	h.finish(len(last), "")
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
			"1 of 3 masters cannot vote: m2 has been down for 12s (connection refused).", "2 vote and 2 are needed. 0 more may fail.",
		}},
		{[]redlock.MasterReport{voting, voting, voting, young, voting}, levelWarn, []string{
			"m4 is quarantined for another 1m23s (its memory is new)", "1 more may fail.",
		}},
		{[]redlock.MasterReport{voting, master("m2", "refused", "is a replica", 3*time.Minute), master("m3", "failing", "OOM", time.Second)}, levelBad, []string{
			"No lock can be granted: 1 of 3 masters can vote, 2 are needed: m2 has been refused for 3m0s (is a replica), m3 has been failing for 1s (OOM).",
		}},
		{[]redlock.MasterReport{voting, master("m2", "dialing", "", time.Second), master("m3", "suspect", "its clock does not fit", 0)}, levelBad, []string{
			"m2 has been dialing for 1s, m3 has been suspect for 0s (its clock does not fit)",
		}},
	} {
		level, text := diagnosed(len(c.reports)/2+1, c.reports)
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
	masters := histories{}
	masters.note([]redlock.MasterReport{master("m1", "voting", "", time.Hour), master("m2", "down", "connection refused, 1s ago", time.Second)}, noon)
	later := noon.Add(time.Minute)
	dialled := []redlock.MasterReport{master("m1", "voting", "", time.Hour), master("m2", "dialing", "", 0), master("m3", "voting", "", time.Hour)}
	masters.note(dialled, later)
	if text := diagnose(dialled, masters, 2, 0, later).Lines[0]; !strings.Contains(text, "m2 has been dialing for 1m1s (connection refused)") {
		t.Error(text)
	}
	if row := masterRow(&dialled[1], masters["m2"], later); row["since"] != int64(61_000) || row["detail"] != "connection refused" {
		t.Errorf("the table shows %v", row)
	}
}

// A verdict that looks at the present alone finds all well between two outages.
func TestDiagnosis_KnowsMastersThatFlap(t *testing.T) {
	voting := func(since time.Duration) []redlock.MasterReport {
		return []redlock.MasterReport{master("m1", "voting", "", time.Hour), master("m2", "voting", "", since)}
	}
	down := []redlock.MasterReport{master("m1", "voting", "", time.Hour), master("m2", "down", "connection refused, 0s ago", 0)}
	steady, flapping := "All 2 masters vote.", "Flapping in the last 5 minutes: m2 stopped voting 2 times."
	for name, c := range map[string]struct {
		polls       [][]redlock.MasterReport
		level, text string
	}{
		"steady":                     {[][]redlock.MasterReport{voting(time.Hour), voting(time.Hour + time.Second)}, levelGood, steady},
		"two outages":                {[][]redlock.MasterReport{voting(time.Hour), down, voting(0), down, voting(0)}, levelWarn, flapping},
		"outages between polls":      {[][]redlock.MasterReport{voting(time.Hour), voting(300 * time.Millisecond), voting(100 * time.Millisecond)}, levelWarn, flapping},
		"one outage":                 {[][]redlock.MasterReport{voting(time.Hour), down, voting(time.Second)}, levelWarn, "Voting again: m2 for 1s so far."},
		"an outage before the page":  {[][]redlock.MasterReport{voting(12 * time.Second)}, levelWarn, "Voting again: m2 for 12s so far."},
		"a while after an outage":    {[][]redlock.MasterReport{voting(2 * time.Minute)}, levelGood, steady},
		"a daemon that just started": {[][]redlock.MasterReport{{master("m1", "voting", "", time.Second), master("m2", "voting", "", 3*time.Second)}}, levelGood, steady},
	} {
		if level, text := diagnosed(2, c.polls...); level != c.level || text != c.text {
			t.Errorf("%s: %s, %q, want %s, %q", name, level, text, c.level, c.text)
		}
	}
	masters := histories{}
	for _, reports := range [][]redlock.MasterReport{voting(time.Hour), down, voting(0), down, voting(0)} {
		masters.note(reports, noon)
	}
	masters.note(voting(flapSpan), noon.Add(flapSpan+time.Second))
	if n := len(masters["m2"].losses); n != 0 {
		t.Errorf("%d outages count after %s", n, flapSpan)
	}
}

// Undecided requests show trouble with masters that all vote whenever a poll looks.
func TestWatch_ReportsUndecidedRequestsOfTheLastMinute(t *testing.T) {
	w, reports := &watch{masters: histories{}}, []redlock.MasterReport{master("m1", "voting", "", time.Hour)}
	poll := func(seconds int, undecided int64) headline {
		h, _ := w.poll(reports, undecided, 1, noon.Add(time.Duration(seconds)*time.Second))
		return h
	}
	if h := poll(0, 1000); h.Level != levelGood {
		t.Errorf("what was before the first poll counts: %v", h)
	}
	for s := range 30 {
		poll(s, 1000)
	}
	if h := poll(30, 1037); h.Level != levelWarn || !strings.Contains(h.Lines[0], "Undecided lock requests in the last minute (NOQUORUM or EXPIRED): 37.") {
		t.Errorf("%v", h)
	}
	for s := 31; s < 100; s++ {
		poll(s, 1037)
	}
	if h := poll(100, 1037); h.Level != levelGood {
		t.Errorf("more than a minute later: %v", h)
	}
	if n := len(w.undecided); n > 70 {
		t.Errorf("%d readings are kept", n)
	}
}

func TestDiagnosis_PutsAWarningFirstUnlessSomethingIsWorse(t *testing.T) {
	good, bad := headline{Level: levelGood}, headline{levelBad, []string{"worse"}}
	good.finish(3, "bootstrap is set")
	bad.finish(3, "bootstrap is set")
	if got := strings.Join(append(good.Lines, bad.Lines...), "; "); got != "bootstrap is set; All 3 masters vote.; worse; bootstrap is set" || good.Level != levelWarn || bad.Level != levelBad {
		t.Errorf("%s, %s, %s", got, good.Level, bad.Level)
	}
}

func TestDiagnosis_NamesTheKeyThatIsWaitedForLongest(t *testing.T) {
	reader := lookingAt()
	reader.note = &redlock.Note{Meta: "nightly run", Name: "worker-7", Client: "10.0.0.9:1"}
	held := reader.view("invoices", redlock.Fence(noon.Add(-4*time.Minute).UnixMicro()))
	waiting := []redlock.Waiting{
		{Keys: []redlock.Key{"free", "invoices"}, Since: 3 * time.Minute}, {Keys: []redlock.Key{"invoices"}, Since: time.Second}, {Keys: []redlock.Key{"b"}},
	}
	keys, requests := stuckKeys(waiting, everything)
	if len(keys) != 2 {
		t.Fatalf("stuck are %v", keys)
	}
	h := headline{Level: levelGood}
	h.warnStuck(keys, []redlock.LockView{{}, held}, requests, 3*time.Minute, noon)
	h.warnStuck([]redlock.Key{"b"}, []redlock.LockView{{}}, requests, 20*time.Second, noon)
	want := "Key invoices has been held 4m0s by nightly run (worker-7 10.0.0.9:1) with 2 waiting, the first for 3m0s.\n" +
		"Key b is not held by a client on any master, with 1 waiting, the first for 20s."
	if text := strings.Join(h.Lines, "\n"); text != want || h.Level != levelWarn {
		t.Errorf("%s\n%s\nwant\n%s", h.Level, text, want)
	}
	waiting[0].Since = stuckAfter - 1
	if keys, _ := stuckKeys(waiting, everything); len(keys) != 0 {
		t.Errorf("a short wait makes %v stuck", keys)
	}
}

func TestPrintable_WritesOutWhatDoesNotShowItself(t *testing.T) {
	for text, want := range map[string]string{
		"invoices": "invoices", "<b>": "<b>", "größe 日本": "größe 日本", `a"b`: `a"b`,
		"a\nb": `"a\nb"`, "\xff": `"\xff"`, "safe\u202egnp": `"safe\u202egnp"`, `"quoted"`: `"\"quoted\""`, " lead": `" lead"`, "": "",
	} {
		if got := printable(text); got != want {
			t.Errorf("%q is shown as %s, want %s", text, got, want)
		}
	}
}

func TestLockRow_ShowsUndecidedAndPermits(t *testing.T) {
	v := lookingAt().view("k", 7)
	v.Mode, v.Limit, v.Count = redlock.Permits, 12, 5
	if row := lockRow("k", &v); row["mode"] != "permits 5 of 12" || row["fence"] != "7" {
		t.Errorf("%v", row)
	}
	if row := lockRow("k", &redlock.LockView{State: redlock.LockUndecided}); row["mode"] != "undecided" || row["fence"] != "" {
		t.Errorf("%v", row)
	}
	if row := lockRow("k", &redlock.LockView{}); row != nil {
		t.Errorf("a free key is %v", row)
	}
}
