package chaos

// allowederrors_checker_test.go: tests of this package itself, without a process.

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"redlockd/pool/faulty"
	"redlockd/redlock/checker"
)

func TestAllowedErrors_NameWhatTookAQuorumFromADaemon(t *testing.T) {
	s := time.Second
	onLinkOf := func(daemon, master int, from, to time.Duration) *strike {
		return &strike{"a cut link", &victim{scope: onLink, daemon: daemon, master: master}, from, to}
	}
	onAll := func(scope scope, master int, from, to time.Duration) *strike {
		return &strike{"a master away", &victim{scope: scope, master: master}, from, to}
	}
	stopped := func(daemon int, from, to time.Duration) *strike {
		return &strike{"a stopped daemon", &victim{scope: onDaemon, daemon: daemon}, from, to}
	}
	for name, c := range map[string]struct {
		all     []*strike
		stalls  []standstill
		allowed bool
	}{
		"nothing":                               {nil, nil, false},
		"a link of it":                          {[]*strike{onLinkOf(0, 0, 9*s, 30*s)}, nil, false},
		"one link twice":                        {[]*strike{onLinkOf(0, 0, 9*s, 30*s), onLinkOf(0, 0, 11*s, 12*s)}, nil, false},
		"a link and the same master":            {[]*strike{onLinkOf(0, 0, 9*s, 30*s), onAll(onMaster, 0, 11*s, 12*s)}, nil, false},
		"a link when it had just begun":         {[]*strike{onLinkOf(0, 0, 10*s+90*unit, 11*s)}, nil, true},
		"a master when it had just begun":       {[]*strike{onAll(onMaster, 0, 10*s, 11*s)}, nil, true},
		"another's link when it had just begun": {[]*strike{onLinkOf(1, 0, 10*s, 11*s)}, nil, false},
		"a link just before it began":           {[]*strike{onLinkOf(0, 0, 10*s-unit, 11*s)}, nil, false},
		"a link soon after it began":            {[]*strike{onLinkOf(0, 0, 10*s+100*unit, 11*s)}, nil, false},
		"two links at once":                     {[]*strike{onLinkOf(0, 0, 9*s, 12*s), onLinkOf(0, 1, 11*s, 13*s)}, nil, true},
		"two links, one after the other":        {[]*strike{onLinkOf(0, 0, 11*s, 12*s), onLinkOf(0, 1, 15*s, 16*s)}, nil, false},
		"the second before the first is found":  {[]*strike{onLinkOf(0, 0, 11*s, 12*s), onLinkOf(0, 1, 13*s, 14*s)}, nil, true},
		"two links of another daemon":           {[]*strike{onLinkOf(1, 0, 9*s, 12*s), onLinkOf(1, 1, 9*s, 12*s)}, nil, false},
		"links of two daemons":                  {[]*strike{onLinkOf(0, 0, 9*s, 12*s), onLinkOf(1, 1, 9*s, 12*s)}, nil, false},
		"a master and a memory":                 {[]*strike{onAll(onMaster, 0, 9*s, 12*s), onAll(onMemory, 1, 1*s, checker.Never)}, nil, true},
		"before":                                {[]*strike{onAll(onMaster, 0, 1*s, 4*s), onAll(onIncarnation, 1, 1*s, 4*s)}, nil, false},
		"just before":                           {[]*strike{onAll(onMaster, 0, 1*s, 9*s), onAll(onIncarnation, 1, 1*s, 9*s)}, nil, true},
		"after":                                 {[]*strike{onAll(onMaster, 0, 21*s, 24*s), onAll(onIncarnation, 1, 21*s, 24*s)}, nil, false},
		"it was stopped":                        {[]*strike{stopped(0, 11*s, 12*s)}, nil, true},
		"another one was stopped":               {[]*strike{stopped(1, 11*s, 12*s)}, nil, false},
		"a machine that stands still":           {nil, []standstill{{allDaemons, 11 * s, 11*s + 200*unit}}, true},
		"in pieces":                             {nil, []standstill{{allDaemons, 11 * s, 11*s + 90*unit}, {allDaemons, 12 * s, 12*s + 90*unit}}, true},
		"a daemon without a processor":          {nil, []standstill{{0, 11 * s, 11*s + 200*unit}}, true},
		"another daemon without one":            {nil, []standstill{{1, 11 * s, 11*s + 200*unit}}, false},
		"for a moment":                          {nil, []standstill{{allDaemons, 11 * s, 11*s + 90*unit}}, false},
		"at another time":                       {nil, []standstill{{allDaemons, 1 * s, 9 * s}, {allDaemons, 21 * s, 30 * s}}, false},
	} {
		n := &nemesis{stand: &stand{masters: make([]*faulty.Server, 3)}, all: c.all, stalls: c.stalls}
		got := n.allowedError(0, "", 10*s, 20*s, terms{returns: 2 * s, stall: 150 * unit, settles: 100 * unit})
		if (got != "") != c.allowed {
			t.Errorf("%s: explained by %q, want an explanation: %v", name, got, c.allowed)
		}
		if len(c.all) > 0 && n.allowedError(0, "", 10*s, 20*s, terms{returns: 2 * s}, "a cut link", "a master away", "a stopped daemon") != "" {
			t.Errorf("%s: an error is allowed although such faults are harmless", name)
		}
	}
}

func TestAllowedErrors_AreOfTheMastersThatHaveTheKey(t *testing.T) {
	for key, allowed := range map[string]bool{"hot:0": true, "hot:1": false} { // of the first and of the second group
		n := &nemesis{stand: &stand{masters: make([]*faulty.Server, 6), plan: plan{groups: 2}}}
		for master := range 2 {
			n.all = append(n.all, &strike{"a master away", &victim{scope: onMaster, master: master}, 0, checker.Never})
		}
		if got := n.allowedError(0, key, time.Second, 2*time.Second, terms{}); (got != "") != allowed {
			t.Errorf("%s: explained by %q, want an explanation: %v", key, got, allowed)
		}
	}
}

func TestClaims_AMinorityOfEachGroupMayForget(t *testing.T) {
	s := &stand{masters: make([]*faulty.Server, 6), daemons: make([]*daemon, 3), plan: plan{groups: 2}}
	c, random, forgot := newClaims(s), rand.New(rand.NewPCG(1, 1)), [2]int{}
	for range 500 {
		if v, ok := c.claim(onMemory, random); ok {
			forgot[s.groupOfMaster(v.master)]++
		}
	}
	if forgot != [2]int{1, 1} {
		t.Errorf("%v masters of each group forgot at once, want one of each", forgot)
	}
}

func TestClaims_SpareAMajorityWhereThePlanSaysSo(t *testing.T) {
	for _, spared := range []bool{false, true} {
		s := &stand{masters: make([]*faulty.Server, 5), daemons: make([]*daemon, 3), plan: plan{spared: spared}}
		struck := map[int]bool{}
		random := rand.New(rand.NewPCG(1, 1))
		for range 500 {
			v, ok := newClaims(s).claim(onMaster, random)
			if !ok {
				t.Fatal("nothing was struck, and nothing could be claimed")
			}
			struck[v.master] = true
		}
		want := 5
		if spared {
			want = s.minority()
		}
		if len(struck) != want {
			t.Errorf("spared %v: %d masters were struck, want %d", spared, len(struck), want)
		}
	}
}

func TestProbe_RepeatsWhatWasNotDecided(t *testing.T) {
	unsure := faulty.ReplyError("NOQUORUM 1 of 3 answered")
	for name, c := range map[string]struct {
		replies []any
		ago     time.Duration
		good    bool
	}{
		"given back":                        {[]any{int64(1)}, 0, true},
		"not decided at first, and then":    {[]any{unsure, int64(1)}, 0, true},
		"what was not decided did it":       {[]any{unsure, unsure, int64(0)}, 0, true},
		"gone although it was given":        {[]any{int64(0)}, 0, false},
		"gone when its time may be over":    {[]any{int64(0)}, brief, true},
		"something else, although in time ": {[]any{"OK"}, 0, false},
	} {
		err := givenBack(time.Now().Add(-c.ago), func() (any, error) {
			reply := c.replies[0]
			c.replies = c.replies[1:]
			if refused, ok := reply.(faulty.ReplyError); ok {
				return nil, refused
			}
			return reply, nil
		})
		if (err == nil) != c.good {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestEpilogue_RepeatsWhatFailedWithItsSeed(t *testing.T) {
	l := &ledger{TB: quiet{t}}
	l.Errorf("the %s failed", "first")
	l.Error("the", "second")
	var e epilogue
	e.add(mix{name: "m"}, 42, "/somewhere", l.sentences())
	var out bytes.Buffer
	e.print(&out)
	for _, want := range []string{"CHAOS_SEED=42", `CHAOS_MIX="m"`, "/somewhere", "the first failed", "the second"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, &out)
		}
	}
}

// quiet is a test that does not fail.
type quiet struct{ testing.TB }

func (quiet) Errorf(string, ...any) {}
func (quiet) Error(...any)          {}

func TestTable_SumsTheRuns(t *testing.T) {
	grants := func(ms ...time.Duration) (all []time.Duration) {
		for _, n := range ms {
			all = append(all, n*time.Millisecond)
		}
		return all
	}
	text := table([]figures{
		{"one", 3, 2, 60 * time.Second, 1000, 10, 5, 0, 0, grants(9, 1, 2, 3, 4, 5, 6, 7, 8, 10)},
		{"two", 5, 3, 30 * time.Second, 500, 20, 7, 1, 2, grants(100)},
	})
	for _, want := range []string{
		"| one | 3 | 2 | 1m0s | 1000 | 10 | 5 | 0 | 0 | 6.0 ms | 10.0 ms | 10.0 ms |\n",
		"| two | 5 | 3 | 30s | 500 | 20 | 7 | 1 | 2 | 100.0 ms | 100.0 ms | 100.0 ms |\n",
		"| **all** | | | 1m30s | 1500 | 30 | 12 | 1 | 2 | 6.0 ms | 10.0 ms | 100.0 ms |\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
}
