package sim

import (
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// environment reads a number from a variable of the environment.
func environment(t *testing.T, name string, otherwise int64) int64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatalf("%s=%q: want a whole number", name, text)
	}
	return n
}

// TestSimulation plays SIM_SECONDS seconds or SIM_EXECUTIONS executions, from
// SIM_SEED on, in SIM_THREADS threads. SIM_ONLY limits it to scenarios whose names
// begin with it; SIM_SCENARIO alone plays one world again.
func TestSimulation_KeepsEveryPromise(t *testing.T) {
	if name := os.Getenv("SIM_SCENARIO"); name != "" {
		s := Find(name)
		if s == nil {
			t.Fatalf("SIM_SCENARIO=%q: no such scenario; there are %s", name, names())
		}
		var out io.Writer = io.Discard
		if os.Getenv("SIM_TRACE") != "" {
			out = os.Stderr
		}
		if v := Replay(s, uint64(environment(t, "SIM_SEED", 1)), out); v != nil {
			t.Error(v)
		}
		return
	}
	seconds := int64(8)
	if testing.Short() {
		seconds = 4
	}
	plan := Plan{
		Scenarios: named(t, os.Getenv("SIM_ONLY")), Seed: uint64(environment(t, "SIM_SEED", 1)),
		Threads:    int(environment(t, "SIM_THREADS", int64(min(2, runtime.GOMAXPROCS(0))))),
		Time:       time.Duration(environment(t, "SIM_SECONDS", seconds)) * time.Second,
		Executions: environment(t, "SIM_EXECUTIONS", 0), Progress: os.Stderr,
	}
	r := Run(plan)
	t.Logf("\n%s", r.Table())
	for _, v := range r.Violated() {
		t.Error(v)
	}
	for _, v := range r.Total().Violations {
		if s := Find(v.Scenario); s.Open != "" {
			t.Logf("open: %s: %v", s.Open, v)
		}
	}
	if environment(t, "SIM_PUBLISH", 0) != 0 && !t.Failed() {
		publish(t, plan, r)
	}
}

// named are the scenarios whose names begin with the prefix, at least one.
func named(t *testing.T, prefix string) []*Scenario {
	t.Helper()
	some := slices.DeleteFunc(Scenarios(), func(s *Scenario) bool { return !strings.HasPrefix(s.Name, prefix) })
	if len(some) == 0 {
		t.Fatalf("SIM_ONLY=%q: no scenario's name begins so; there are %s", prefix, names())
	}
	return some
}

// names are those of all scenarios.
func names() string {
	var all []string
	for _, s := range Scenarios() {
		all = append(all, s.Name)
	}
	return strings.Join(all, ", ")
}

// A world is a function of its scenario and its seed.
func TestWorlds_AreTheSameEveryTime(t *testing.T) {
	names := []string{"everything-3", "deaths-5", "work-3", "crowd-3", "holds-3", "queue-3", "oblivion-3", "waitzones-3", "permits-3", "contest-3", "drain-3", "leave-3", "cycles-3", "cyclefaults-3", "rings-3", "ringfaults-3", "unasked-3", "guests-3", "regrets-3", "groups-3", "groupdeaths-3", "slotdeaths-3"}
	if testing.Short() {
		names = []string{"work-3", "crowd-3", "holds-3", "drain-3"} // the shortest worlds
	}
	for _, name := range names {
		var first [4]int64
		for round := range 2 {
			w := NewWorld(Find(name), 7, NewLab())
			w.Play()
			is := [4]int64{w.steps, w.commands, w.executions, w.checker().grants}
			if round == 0 {
				first = is
			} else if is != first {
				t.Errorf("%s: %v steps, commands, executions and grants the first time, %v now", name, first, is)
			}
		}
	}
}
