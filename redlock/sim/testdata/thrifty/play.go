// The worlds of a study, see redlock/THRIFTY.md.

package sim

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"redlockd/pool"
	product "redlockd/redlock/engine"
)

// TestThriftyWorlds plays SIM_WORLDS worlds of the scenarios of SIM_ONLY and prints what it counted.
func TestThriftyWorlds(t *testing.T) {
	lab := NewLab()
	list := thriftyScenarios()
	if os.Getenv("SIM_ONLY") == "required" {
		list = slices.DeleteFunc(Scenarios(), func(s *Scenario) bool { return s.Open != "" })
	} else if only := os.Getenv("SIM_ONLY"); only != "" {
		list = nil
		for _, name := range strings.Fields(only) {
			all := append(thriftyScenarios(), Scenarios()...)
			i := slices.IndexFunc(all, func(s *Scenario) bool { return s.Name == name })
			if i < 0 {
				t.Fatalf("SIM_ONLY=%q: no such scenario", name)
			}
			list = append(list, all[i])
		}
	}
	end := time.Now().Add(time.Duration(environment(t, "SIM_SECONDS", 3600)) * time.Second)
	seed, worlds := environment(t, "SIM_SEED", 1), environment(t, "SIM_WORLDS", 3)
	for i := range worlds {
		for _, s := range list {
			if time.Now().Before(end) {
				playThrifty(t, s, uint64(seed+i), lab)
			}
		}
	}
}

func playThrifty(t *testing.T, s *Scenario, seed uint64, lab *Lab) {
	clear(pool.Counts)
	clear(pool.Spans)
	product.Everyone = nil
	w := NewWorld(s, seed, lab)
	w.after(3*time.Second, nil, w.lookAtCopies)
	if strings.HasPrefix(s.Name, "own-stops") {
		w.after(3*time.Second, nil, func() { stopInTurn(w) })
	}
	violation := ""
	if v := w.Play(); v != nil {
		violation = fmt.Sprintf("%s: %s (seed %d)", v.Rule, v.Why, seed)
		if os.Getenv("SIM_WHY") != "" {
			t.Log(Replay(s, seed, os.Stderr))
		}
	}
	c := pool.Counts
	for _, e := range product.Everyone {
		c["splits"] += e.Counts.Split.Load()
		c["undone"] += e.Counts.Undone.Load()
		c["late grants"] += e.Counts.LateGrants.Load()
		c["repaired"] += e.Counts.Repaired.Load()
		c["second seals"] += e.Counts.SecondSeals.Load()
		c["third seals"] += e.Counts.ThirdSeals.Load()
		c["holds lost"] += e.Counts.HoldsLost.Load()
	}
	c["worlds"], c["executions"], c["commands"], c["grants checked"] = 1, w.executions, w.commands, w.checker().grants
	line, err := json.Marshal(worldCounts{s.Name, violation, c, pool.Spans})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("\nworld %s\n", line)
}

// lookAtCopies counts, again and again, the copies of leases that run. It changes nothing.
func (w *World) lookAtCopies() {
	if w.calm {
		return
	}
	for key, r := range w.checker().locks {
		for _, holder := range r.claims {
			if holder.until > w.now && holder.release == 0 && !holder.foreign {
				w.lookAt(key, holder)
			}
		}
	}
	w.after(2*time.Millisecond, nil, w.lookAtCopies)
}

func (w *World) lookAt(key string, holder *tokenState) {
	n := 0
	for _, s := range w.servers {
		v := s.Memory[key]
		now := (epoch + int64(w.now/time.Microsecond)*(1_000_000+s.ppm)/1_000_000 + s.offset) / 1000
		if v == nil || v.Expires < now || !s.up {
			continue
		}
		for token := range holders(v) {
			if token == holder.token {
				n++
			}
		}
	}
	pool.Counts["looks"]++
	switch q := w.Scenario.Masters/2 + 1; {
	case n < q:
		pool.Counts["looks below a quorum"]++
	case n == q:
		pool.Counts["looks at a bare quorum"]++
	case n >= w.Scenario.Masters:
		pool.Counts["looks at all copies"]++
	}
}
