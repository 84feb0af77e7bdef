package diagnosis

import (
	"os"
	"regexp"
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
	h.Finish(len(last), "")
	return h.Level, strings.Join(h.Lines, "\n")
}

func TestDiagnosis_NamesEveryMasterThatCannotVoteAndWhy(t *testing.T) {
	voting := master("m1", "voting", "", time.Hour)
	young := master("m4", "quarantined", "its memory is new, votes in 83.2s", time.Minute)
	young.Left = 83200 * time.Millisecond
	forgot := master("m5", "voting", "", time.Hour)
	forgot.WorkLeft, forgot.Durable = 310*time.Second, true
	for _, c := range []struct {
		reports []redlock.MasterReport
		level   string
		says    []string
	}{
		{[]redlock.MasterReport{voting, forgot, voting, forgot, forgot}, LevelWarn, []string{
			"New work (DWORK) is refused for another 5m10s: 2 of 5 masters may vote on it, 3 are needed; the others lost their memory.",
			"Counters (DNEXTID) that are new, or were idle, get LOSTSTATE: 0 of 5 masters remember all counters, 3 are needed.",
		}},
		{[]redlock.MasterReport{voting, voting, voting}, LevelGood, []string{"All 3 masters vote."}},
		{[]redlock.MasterReport{voting, master("m2", "down", "connection refused, 12s ago", 12*time.Second), voting}, LevelWarn, []string{
			"1 of 3 masters cannot vote: m2 has been down for 12s (connection refused).", "2 vote and 2 are needed. 0 more may fail.",
		}},
		{[]redlock.MasterReport{voting, voting, voting, young, voting}, LevelWarn, []string{
			"m4 is quarantined for another 1m23s (its memory is new)", "1 more may fail.",
		}},
		{[]redlock.MasterReport{voting, master("m2", "refused", "is a replica", 3*time.Minute), master("m3", "failing", "OOM", time.Second)}, LevelBad, []string{
			"No lock can be granted: 1 of 3 masters can vote, 2 are needed: m2 has been refused for 3m0s (is a replica), m3 has been failing for 1s (OOM).",
		}},
		{[]redlock.MasterReport{voting, master("m2", "dialing", "", time.Second), master("m3", "suspect", "its clock does not fit", 0)}, LevelBad, []string{
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

func TestDiagnosis_NamesDaemonsThatGrantNothing(t *testing.T) {
	for stale, want := range map[int64]string{0: LevelGood, 2: LevelWarn} {
		h := Headline{Level: LevelGood}
		h.WarnDaemons(stale)
		h.Finish(3, "")
		if text := strings.Join(h.Lines, "\n"); h.Level != want || strings.Contains(text, "not that of the masters: 2 (") != (stale > 0) {
			t.Errorf("level %s, want %s: %s", h.Level, want, text)
		}
	}
}

func TestDiagnosis_NamesSlotsOfAnUnfinishedMove(t *testing.T) {
	for unfinished, want := range map[int64]string{0: LevelGood, 8192: LevelWarn} {
		h := Headline{Level: LevelGood}
		h.WarnSlots(unfinished)
		h.Finish(6, "")
		if text := strings.Join(h.Lines, "\n"); h.Level != want || strings.Contains(text, "Nothing is granted in 8192 slots: ") != (unfinished > 0) {
			t.Errorf("level %s, want %s: %s", h.Level, want, text)
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
	record := Record{masters: masters}
	if since, detail := record.State(&dialled[1], later); since != 61*time.Second || detail != "connection refused" {
		t.Errorf("the table shows %s, %s", since, detail)
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
		"steady":                     {[][]redlock.MasterReport{voting(time.Hour), voting(time.Hour + time.Second)}, LevelGood, steady},
		"two outages":                {[][]redlock.MasterReport{voting(time.Hour), down, voting(0), down, voting(0)}, LevelWarn, flapping},
		"outages between polls":      {[][]redlock.MasterReport{voting(time.Hour), voting(300 * time.Millisecond), voting(100 * time.Millisecond)}, LevelWarn, flapping},
		"one outage":                 {[][]redlock.MasterReport{voting(time.Hour), down, voting(time.Second)}, LevelWarn, "Voting again: m2 for 1s so far."},
		"an outage before the page":  {[][]redlock.MasterReport{voting(12 * time.Second)}, LevelWarn, "Voting again: m2 for 12s so far."},
		"a while after an outage":    {[][]redlock.MasterReport{voting(2 * time.Minute)}, LevelGood, steady},
		"a daemon that just started": {[][]redlock.MasterReport{{master("m1", "voting", "", time.Second), master("m2", "voting", "", 3*time.Second)}}, LevelGood, steady},
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
func TestRecord_ReportsUndecidedRequestsOfTheLastMinute(t *testing.T) {
	r, reports := &Record{}, []redlock.MasterReport{master("m1", "voting", "", time.Hour)}
	poll := func(seconds int, undecided int64) Headline {
		return r.Poll(reports, undecided, noon.Add(time.Duration(seconds)*time.Second))
	}
	if h := poll(0, 1000); h.Level != LevelGood {
		t.Errorf("what was before the first poll counts: %v", h)
	}
	for s := range 30 {
		poll(s, 1000)
	}
	if h := poll(30, 1037); h.Level != LevelWarn || !strings.Contains(h.Lines[0], "Undecided lock requests in the last minute (NOQUORUM or EXPIRED): 37.") {
		t.Errorf("%v", h)
	}
	for s := 31; s < 100; s++ {
		poll(s, 1037)
	}
	if h := poll(100, 1037); h.Level != LevelGood {
		t.Errorf("more than a minute later: %v", h)
	}
	if n := len(r.undecided); n > 70 {
		t.Errorf("%d readings are kept", n)
	}
}

func TestDiagnosis_PutsAWarningFirstUnlessSomethingIsWorse(t *testing.T) {
	good, bad := Headline{Level: LevelGood}, Headline{LevelBad, []string{"worse"}, []string{""}}
	good.Finish(3, "bootstrap is set")
	bad.Finish(3, "bootstrap is set")
	if got := strings.Join(append(good.Lines, bad.Lines...), "; "); got != "bootstrap is set; All 3 masters vote.; worse; bootstrap is set" || good.Level != LevelWarn || bad.Level != LevelBad {
		t.Errorf("%s, %s, %s", got, good.Level, bad.Level)
	}
}

func TestDiagnosis_NamesTheKeyThatIsWaitedForLongest(t *testing.T) {
	holder := Holder{Meta: "nightly run", Name: "worker-7", Client: "10.0.0.9:1"}
	held := Lock{Key: "invoices", State: redlock.LockHeld, Holders: holder.Text(1), Fence: redlock.Fence(noon.Add(-4 * time.Minute).UnixMicro())}
	waiting := []redlock.Waiting{
		{Keys: []redlock.Key{"free", "invoices"}, Since: 3 * time.Minute}, {Keys: []redlock.Key{"invoices"}, Since: time.Second}, {Keys: []redlock.Key{"b"}},
	}
	keys, requests := StuckKeys(waiting, everything)
	if len(keys) != 2 {
		t.Fatalf("stuck are %v", keys)
	}
	h := Headline{Level: LevelGood}
	h.WarnStuck([]Lock{{Key: "free"}, held}, requests, 3*time.Minute, noon)
	h.WarnStuck([]Lock{{Key: "b"}}, requests, 20*time.Second, noon)
	h.WarnStuck(nil, requests, time.Hour, noon) // the locks could not be read
	want := "Key invoices has been held 4m0s by nightly run (worker-7 10.0.0.9:1) with 2 waiting, the first for 3m0s.\n" +
		"Key b is not held by a client on any master, with 1 waiting, the first for 20s."
	if text := strings.Join(h.Lines, "\n"); text != want || h.Level != LevelWarn {
		t.Errorf("%s\n%s\nwant\n%s", h.Level, text, want)
	}
	// What no quorum has answered is not an answer.
	for want, locks := range map[string][]Lock{
		"Key b has a holder that is unknown at the moment (too few masters answered), with 1 waiting, the first for 20s.": {{Key: "free"}, {Key: "b", State: redlock.LockUndecided}},
		"Key b may be held by token 1f (too few masters answered), with 1 waiting, the first for 20s.":                    {{Key: "b", State: redlock.LockUndecided, Holders: "token 1f"}},
		"Key invoices has been held 4m0s by nightly run (worker-7 10.0.0.9:1) with 2 waiting, the first for 20s.":         {{Key: "b", State: redlock.LockUndecided}, held},
		"Key b has data that is no lock, with 1 waiting, the first for 20s.":                                              {{Key: "b", State: redlock.LockForeign}},
	} {
		h := Headline{Level: LevelGood}
		if h.WarnStuck(locks, requests, 20*time.Second, noon); h.Lines[0] != want {
			t.Errorf("%q, want %q", h.Lines, want)
		}
	}
	waiting[0].Since = stuckAfter - 1
	if keys, _ := StuckKeys(waiting, everything); len(keys) != 0 {
		t.Errorf("a short wait makes %v stuck", keys)
	}
}

// DMASTERS shows details as fields, without commas.
func TestReasonOf_LeavesOutTimes(t *testing.T) {
	for detail, want := range map[string]string{
		"connection refused, 12s ago": "connection refused", "connection refused; 12s ago": "connection refused",
		"its memory is new, votes in 83.2s": "its memory is new", "its memory is new; votes in 83.2s": "its memory is new",
		"READONLY, it is a replica": "READONLY, it is a replica", "12s ago": "12s ago", "": "",
		"dial tcp: context deadline exceeded, 1s ago": "it can be reached but does not answer",
	} {
		if got := reasonOf(detail); got != want {
			t.Errorf("%q: %q, want %q", detail, got, want)
		}
	}
}

func TestPrintable_WritesOutWhatDoesNotShowItself(t *testing.T) {
	for text, want := range map[string]string{
		"invoices": "invoices", "<b>": "<b>", "größe 日本": "größe 日本", `a"b`: `a"b`,
		"a\nb": `"a\nb"`, "\xff": `"\xff"`, "safe\u202egnp": `"safe\u202egnp"`, `"quoted"`: `"\"quoted\""`, " lead": `" lead"`, "": "",
	} {
		if got := Printable(text); got != want {
			t.Errorf("%q is shown as %s, want %s", text, got, want)
		}
	}
}

// One of several groups that cannot grant is a warning that names it; all of them are bad.
func TestDiagnosis_NamesTheGroupThatCannotGrant(t *testing.T) {
	group := func(name, state string) []redlock.MasterReport {
		all := []redlock.MasterReport{master(name+"-a", "voting", "", time.Hour), master(name+"-b", state, "", time.Hour), master(name+"-c", state, "", time.Hour)}
		for i := range all {
			all[i].Group = name
		}
		return all
	}
	for _, c := range []struct {
		one, two, level, says string
	}{
		{"voting", "voting", LevelGood, ""},
		{"voting", "down", LevelWarn, "Group g2: No lock can be granted: 1 of 3 masters can vote, 2 are needed"},
		{"down", "down", LevelBad, "Group g1: No lock can be granted"},
	} {
		r := Record{}
		h := r.Poll(append(group("g1", c.one), group("g2", c.two)...), 0, noon)
		if h.Level != c.level || !strings.Contains(strings.Join(h.Lines, "\n"), c.says) {
			t.Errorf("%s and %s: %s, %q", c.one, c.two, h.Level, h.Lines)
		}
	}
}

// Each line leads to a card that there is.
func TestHeadline_NamesCardsOfTheRunbook(t *testing.T) {
	source, err := os.ReadFile("diagnosis.go")
	if err != nil {
		t.Fatal(err)
	}
	var runbook []byte
	for _, page := range []string{"RUNBOOK.md", "LOGS.md", "MEMBERSHIP.md"} {
		text, err := os.ReadFile("../../configs/" + page)
		if err != nil {
			t.Fatal(err)
		}
		runbook = append(runbook, text...)
	}
	cards := 0
	for _, match := range regexp.MustCompile(`(?:warn\(|return |startCard = )"([A-Z][^"]+)"`).FindAllStringSubmatch(string(source), -1) {
		if cards++; !strings.Contains(string(runbook), "# "+match[1]+"\n") {
			t.Errorf("the runbook has no card %q", match[1])
		}
	}
	if cards < 12 {
		t.Errorf("only %d cards were found", cards)
	}
	for _, state := range []string{"quarantined", "suspect", "failing", "down", "refused", "draining", "drained"} {
		if CardOf(state) == "" {
			t.Errorf("a master that is %s has no card", state)
		}
	}
}
