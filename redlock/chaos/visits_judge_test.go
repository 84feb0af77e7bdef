package chaos

// visits_judge_test.go: the judges of lines and of idle keys tell good from bad.

import (
	"testing"
	"time"

	"redlockd/redlock/judge"
)

const unit = time.Millisecond

// stood is a visit that waits, in ms: invoked, seen in line, answered; with a
// fence it was served, and the key was its own up to until.
func stood(key string, invoke, stood, complete, fence, until int) election {
	v := election{
		Key: key, Waits: true, Invoke: time.Duration(invoke) * unit, Stood: time.Duration(stood) * unit,
		End: time.Duration(invoke+1000) * unit, Complete: time.Duration(complete) * unit, Outcome: judge.No,
	}
	if fence > 0 {
		v.Outcome, v.Fence, v.Until = judge.OK, int64(fence), time.Duration(until)*unit
	}
	return v
}

func reads(v election) election {
	v.Reads = true
	return v
}

func tries(v election) election {
	v.Waits = false
	return v
}

func TestOvertakes_AreThoseWhoCameLaterAndWereServedBefore(t *testing.T) {
	for name, c := range map[string]struct {
		visits []election
		want   int
	}{
		"in order":                          {[]election{stood("k", 0, 5, 20, 1, 25), stood("k", 10, 15, 30, 2, 35)}, 0},
		"the later one first":               {[]election{stood("k", 0, 5, 30, 2, 35), stood("k", 10, 15, 20, 1, 25)}, 1},
		"on another key":                    {[]election{stood("k", 0, 5, 30, 2, 35), stood("j", 10, 15, 20, 1, 25)}, 0},
		"nobody saw the first in line":      {[]election{stood("k", 0, 0, 30, 2, 35), stood("k", 10, 15, 20, 1, 25)}, 0},
		"it came before the first was seen": {[]election{stood("k", 0, 12, 30, 2, 35), stood("k", 10, 15, 20, 1, 25)}, 0},
		"a try passes":                      {[]election{stood("k", 0, 5, 30, 2, 35), tries(stood("k", 10, 0, 20, 1, 25))}, 0},
		"refused although its time ran on":  {[]election{stood("k", 0, 5, 30, 0, 0), stood("k", 10, 15, 20, 1, 25)}, 1},
		"refused when its time was over":    {[]election{stood("k", 0, 5, 1005, 0, 0), stood("k", 990, 995, 1010, 1, 1020)}, 0},
		"a reader passes a reader":          {[]election{reads(stood("k", 0, 5, 30, 2, 35)), reads(stood("k", 10, 15, 20, 1, 25))}, 0},
		"a reader passes the writer":        {[]election{stood("k", 0, 5, 30, 2, 35), reads(stood("k", 10, 15, 20, 1, 25))}, 1},
		"the writer passes a reader":        {[]election{reads(stood("k", 0, 5, 30, 2, 35)), stood("k", 10, 15, 20, 1, 25)}, 1},
	} {
		if got := overtakes(c.visits, func(*election, *election) bool { return true }); len(got) != c.want {
			t.Errorf("%s: %d overtaken, want %d: %v", name, len(got), c.want, got)
		}
	}
}

func TestIdles_CountFromTheEndOfTheLastHolder(t *testing.T) {
	unknown := stood("k", 0, 0, 10, 0, 0)
	unknown.Outcome, unknown.Until = judge.Unknown, 50*unit
	for name, c := range map[string]struct {
		visits []election
		want   time.Duration
	}{
		"nobody had it":           {[]election{stood("k", 10, 0, 30, 1, 35)}, 20 * unit},
		"somebody had it":         {[]election{stood("k", 0, 0, 1, 1, 20), stood("k", 10, 0, 30, 2, 35)}, 10 * unit},
		"somebody has it":         {[]election{stood("k", 0, 0, 1, 1, 90), stood("k", 10, 0, 30, 0, 0)}, 1 * unit},
		"somebody may have it":    {[]election{unknown, stood("k", 20, 0, 60, 1, 65)}, 10 * unit},
		"refused and nobody's":    {[]election{stood("k", 0, 0, 1, 1, 20), stood("k", 10, 0, 80, 0, 0)}, 60 * unit},
		"not by those who try":    {[]election{tries(stood("k", 10, 0, 30, 1, 35))}, 0},
		"another key is another":  {[]election{stood("j", 0, 0, 1, 1, 29), stood("k", 10, 0, 30, 1, 35)}, 20 * unit},
		"the longest comes first": {[]election{stood("k", 0, 0, 5, 1, 8), stood("k", 6, 0, 40, 2, 45)}, 32 * unit},
	} {
		var longest time.Duration
		if all := idles(c.visits); len(all) > 0 {
			longest = all[0].to - all[0].from
		}
		if longest != c.want {
			t.Errorf("%s: idle for %v, want %v", name, longest, c.want)
		}
	}
}

func TestNemesis_IsQuietWhereNoFaultWasUnderWay(t *testing.T) {
	n := &nemesis{all: []*strike{{fault: "a", from: 10, to: 20}, {fault: "b", from: 30, to: judge.Never}}, stalls: []standstill{{allDaemons, 2, 4}, {1, 5, 9}}}
	for _, c := range []struct {
		from, to time.Duration
		want     bool
	}{
		{0, 2, true}, {0, 3, false}, {4, 9, true}, {4, 10, false}, {15, 16, false}, {21, 29, true}, {21, 31, false}, {100, 200, false},
	} {
		if got := n.quiet(0, c.from, c.to); got != c.want {
			t.Errorf("quiet from %v to %v: %v, want %v", c.from, c.to, got, c.want)
		}
	}
}
