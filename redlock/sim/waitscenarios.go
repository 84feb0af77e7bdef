package sim

import (
	"time"

	"redlockd/redlock"
)

// waitScenarios: clients that wait, with and without news from the masters, in
// queues, and with leases that are renewed.
func waitScenarios() []*Scenario {
	shared := []redlock.Mode{redlock.Exclusive, redlock.Shared}
	return []*Scenario{
		waitBase("waits", func(s *Scenario) {
			s.Keys, s.Several, s.Leavers, s.Holding, s.Modes = 2, 6, 6, 6, shared
			s.Slow, s.Stall, s.Split, s.Reliable, s.News, s.Asleep = 0, 0, 0, true, true, time.Second
		}),
		waitBase("alone", func(s *Scenario) { // nothing but the releases of its own daemon wakes anybody up
			s.Keys, s.Daemons, s.Prompt, s.Leavers, s.Modes, s.Named = 2, 1, true, 10, shared, 0
			s.MinTTL, s.MaxTTL = 5*time.Second, 10*time.Second
			s.Slow, s.Stall, s.Split, s.Undelivered, s.Reliable, s.Asleep = 0, 0, 0, 20, true, 150*time.Millisecond
		}),
		waitBase("blind", func(s *Scenario) {
			s.Keys, s.Several, s.Leavers, s.Holding, s.Modes, s.Asleep = 2, 6, 6, 6, shared, 5*time.Second
			s.Faults = []fault{{400 * time.Millisecond, cut}, {700 * time.Millisecond, part}, {time.Second, stop}, {2 * time.Second, die}}
		}),
		waitBase("deaf", func(s *Scenario) {
			s.Keys, s.Several, s.Leavers, s.MaxWait, s.Length = 2, 6, 6, 14*time.Second, 12*time.Second
			s.News, s.Deaf, s.Tardy, s.Asleep = true, 2, 4, 10*time.Second
			s.Faults = []fault{{time.Second, cut}, {time.Second, sleep}}
		}),
		waitBase("crowd", func(s *Scenario) {
			s.Keys, s.Several, s.Leavers, s.Modes, s.News, s.Tardy, s.Asleep = 1, 0, 4, shared, true, 10, 4*time.Second
			s.People = []People{{16, newWaiting}}
			s.Faults = []fault{{400 * time.Millisecond, cut}, {700 * time.Millisecond, part}, {time.Second, stop}, {2 * time.Second, die}}
		}),
		waitBase("wiped", func(s *Scenario) {
			s.Keys, s.Several, s.Holding, s.News, s.Asleep, s.Wiped = 2, 6, 3, true, 4*time.Second, true
			s.People = []People{{8, newWaiting}, {2, newForeign}}
			s.Faults = []fault{{150 * time.Millisecond, wipe}, {time.Second, cut}, {time.Second, stop}}
		}),
		waitBase("holds", func(s *Scenario) {
			s.Keys, s.Several, s.Holding, s.Leavers, s.Modes, s.News, s.Asleep = 2, 6, 1, 6, shared, true, 4*time.Second
			s.Faults = []fault{{500 * time.Millisecond, cut}, {700 * time.Millisecond, sleep}, {700 * time.Millisecond, stop}, {time.Second, part}, {3 * time.Second, die}}
		}),
		waitBase("fair", func(s *Scenario) {
			s.Keys, s.Several, s.Fair, s.Leavers, s.Modes, s.Holding = 2, 6, 1, 6, shared, 8
			s.Slow, s.Stall, s.Split, s.Reliable, s.News, s.Asleep = 0, 0, 0, true, true, time.Second
		}),
		waitBase("queue", func(s *Scenario) {
			s.Keys, s.Several, s.Fair, s.Leavers, s.Modes, s.News = 2, 6, 1, 4, shared, true
			s.People, s.Length, s.MaxWait, s.Asleep, s.Slow = []People{{12, newWaiting}}, 10*time.Second, 8*time.Second, 5*time.Second, 10
			s.ClockSpread = 40 * time.Millisecond // so that daemons that know other masters disagree about the time
			s.Faults = []fault{{700 * time.Millisecond, cut}, {time.Second, stop}, {time.Second, sleep}, {2 * time.Second, part}, {3 * time.Second, die}}
		}),
	}
}

// waitBase is what scenarios with waits have in common.
func waitBase(name string, change func(*Scenario)) *Scenario {
	return base(name, func(s *Scenario) {
		s.People, s.MaxWait = []People{{8, newWaiting}}, 6*time.Second
		change(s)
	})
}
