package sim

import "time"

// slotScenarios have slots that move between two groups while clients use them, there and back.
// Operators are killed at any step, and other ones go on. Daemons start with files of before a move.
func slotScenarios() []*Scenario {
	moving := func(name string, faults ...fault) *Scenario {
		return base(name, func(s *Scenario) {
			s.Groups, s.Movers, s.Daemons, s.Keys, s.Counters = true, 1, 4, 8, 6
			s.MinTTL, s.MaxTTL, s.MaxKeep, s.Length = 60*time.Millisecond, 3*time.Second, 8*time.Second, 40*time.Second
			s.Clients = []ClientGroup{{5, newLocking}, {2, newCounting}, {2, newWorking}, {3, newSpanning}, {3, newWaiting}}
			s.Settle = settleMoves
			s.MaxWait, s.Holding, s.Asleep = 8*time.Second, 2, time.Hour
			s.Faults = append([]fault{{300 * time.Millisecond, moveSlots}}, faults...)
		})
	}
	rivals := moving("slotrivals", fault{2 * time.Second, interruptMove}, fault{time.Second, partition}, fault{3 * time.Second, die})
	rivals.Movers = 2
	split := moving("slotsplit", fault{2 * time.Second, interruptMove}, fault{2 * time.Second, cut}) // every flush in pieces
	split.Split = 1
	return []*Scenario{
		moving("slotmove"),
		moving("slotlinks", fault{3 * time.Second, interruptMove}, fault{400 * time.Millisecond, cut}, fault{300 * time.Millisecond, partition}, fault{time.Second, stop}, fault{2 * time.Second, sleep}, fault{2 * time.Second, isolate}),
		moving("slotdeaths", fault{2 * time.Second, interruptMove}, fault{1500 * time.Millisecond, die}, fault{time.Second, isolate}, fault{2 * time.Second, stop}),
		moving("slotmemory", fault{3 * time.Second, interruptMove}, fault{time.Second, remember}, fault{time.Second, forgetOne}, fault{time.Second, partition}, fault{5 * time.Second, die}),
		moving("slotfiles", fault{3 * time.Second, interruptMove}, fault{500 * time.Millisecond, remember}, fault{time.Second, oneComesBack}, fault{2 * time.Second, divideGroup}, fault{5 * time.Second, die}),
		moving("slotclocks", fault{4 * time.Second, interruptMove}, fault{8 * time.Second, setGroupClocks}, fault{time.Second, partition}),
		rivals, split,
	}
}
