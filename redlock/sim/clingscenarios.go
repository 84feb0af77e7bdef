package sim

import (
	"time"

	"redlockd/redlock"
)

// clingScenarios have clients that do not let go.
func clingScenarios() []*Scenario {
	base := func(name string, change func(*Scenario)) *Scenario {
		return base(name, func(s *Scenario) {
			s.Modes, s.Named, s.MaxHold, s.Length = []redlock.Kind{redlock.Exclusive, redlock.Shared, redlock.Permits}, 2, 1500*time.Millisecond, 8*time.Second
			change(s)
		})
	}
	return []*Scenario{
		base("longest", func(s *Scenario) {
			s.Slow, s.Stall, s.Split, s.Undelivered, s.Reliable = 0, 0, 0, 0, true
		}),
		base("longestfaults", func(s *Scenario) {
			s.Faults = []fault{{400 * time.Millisecond, cut}, {700 * time.Millisecond, partition}, {time.Second, stop}, {2 * time.Second, die}}
		}),
	}
}
