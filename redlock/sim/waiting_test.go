package sim

import (
	"os"
	"slices"
	"testing"
	"time"
)

// longestWait is the scenario whose worlds take as long as those of all others together.
const longestWait = "guests-3"

// TestWaits plays the scenarios in which clients wait, each with SIM_WORLDS
// seeds. Those of slots that move take a third of the time: test-long has them. SIM_ONLY limits it to scenarios whose names begin with it.
func TestWaits_KeepEveryPromise(t *testing.T) {
	worlds := environment(t, "SIM_WORLDS", 1)
	rows := slices.DeleteFunc(named(t, os.Getenv("SIM_ONLY")), func(s *Scenario) bool {
		return s.MaxWait == 0 || testing.Short() && (s.Masters > 3 || s.Movers > 0 || s.Name == longestWait)
	})
	first := uint64(environment(t, "SIM_SEED", 1))
	lab := NewLab()
	for _, s := range rows {
		start, grants, checked, executions := time.Now(), int64(0), int64(0), int64(0)
		for seed := first; seed < first+uint64(worlds); seed++ {
			w := NewWorld(s, seed, lab)
			if v := w.Play(); v != nil {
				if again := Replay(s, seed, os.Stderr); os.Getenv("SIM_WHY") != "" && again != nil {
					v = again
				}
				t.Error(v)
				break
			}
			grants, checked, executions = grants+w.checker().grants, checked+w.checker().checked, executions+w.executions
		}
		t.Logf("%-9s %6d grants, %7d answers, %8d executions, %v", s.Name, grants, checked, executions, time.Since(start).Round(time.Millisecond))
	}
}
