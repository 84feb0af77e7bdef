package sim

import (
	"time"

	"redlockd/redlock"
)

// waitScenarios have clients that wait, with and without announcements from the
// masters, in queues, and with leases that are renewed.
func waitScenarios() []*Scenario {
	shared := []redlock.Kind{redlock.Exclusive, redlock.Shared}
	return []*Scenario{
		waitBase("waits", func(s *Scenario) {
			s.Owners = 2
			s.Keys, s.Several, s.Leavers, s.Holding, s.Modes = 2, 6, 6, 6, shared
			s.Slow, s.Stall, s.Split, s.Reliable, s.Announcements, s.Asleep = 0, 0, 0, true, true, time.Second
		}),
		waitBase("alone", func(s *Scenario) { // only the releases of its own daemon wake a waiter
			s.Keys, s.Daemons, s.Prompt, s.Leavers, s.Modes, s.Named = 2, 1, true, 10, shared, 0
			s.MinTTL, s.MaxTTL = 5*time.Second, 10*time.Second
			s.Slow, s.Stall, s.Split, s.Undelivered, s.Reliable, s.Asleep = 0, 0, 0, 20, true, 150*time.Millisecond
		}),
		waitBase("pairs", func(s *Scenario) { // requests for two keys, while others want one of them
			s.Keys, s.Several, s.Prompt, s.Named, s.Modes, s.Length, s.Asleep = 3, 2, true, 0, shared, 4*time.Second, 15*time.Second
			s.MinTTL, s.MaxTTL, s.Slow, s.Undelivered = 8*time.Second, 10*time.Second, 10, 20
			s.Faults = []fault{{300 * time.Millisecond, cut}, {400 * time.Millisecond, partition}}
		}),
		waitBase("blind", func(s *Scenario) {
			s.Keys, s.Several, s.Leavers, s.Holding, s.Modes, s.Asleep = 2, 6, 6, 6, shared, 5*time.Second
			s.Faults = []fault{{400 * time.Millisecond, cut}, {700 * time.Millisecond, partition}, {time.Second, stop}, {2 * time.Second, die}}
		}),
		waitBase("deaf", func(s *Scenario) {
			s.Keys, s.Several, s.Leavers, s.MaxWait, s.Length = 2, 6, 6, 14*time.Second, 12*time.Second
			s.Announcements, s.AnnouncementsLost, s.AnnouncementsLate, s.Asleep = true, 2, 4, 10*time.Second
			s.Faults = []fault{{time.Second, cut}, {time.Second, sleep}}
		}),
		waitBase("crowd", func(s *Scenario) {
			s.Keys, s.Several, s.Leavers, s.Modes, s.Announcements, s.AnnouncementsLate, s.Asleep = 1, 0, 4, shared, true, 10, 4*time.Second
			s.Clients = []ClientGroup{{16, newWaiting}}
			s.Faults = []fault{{400 * time.Millisecond, cut}, {700 * time.Millisecond, partition}, {time.Second, stop}, {2 * time.Second, die}}
		}),
		waitBase("wiped", func(s *Scenario) {
			s.Keys, s.Several, s.Holding, s.Announcements, s.Asleep, s.Wiped = 2, 6, 3, true, 4*time.Second, true
			s.Clients = []ClientGroup{{8, newWaiting}, {2, newForeign}}
			s.Faults = []fault{{150 * time.Millisecond, wipe}, {time.Second, cut}, {time.Second, stop}}
		}),
		waitBase("torn", func(s *Scenario) { // of several keys that are held together one is deleted
			s.Keys, s.Several, s.Holding, s.Announcements, s.Asleep, s.Wiped, s.Named = 4, 1, 1, true, 4*time.Second, true, 0
			s.Clients, s.MinTTL, s.MaxTTL = []ClientGroup{{8, newWaiting}, {1, newForeign}}, 400*time.Millisecond, time.Second
			s.Faults = []fault{{400 * time.Millisecond, wipe}}
		}),
		waitBase("holds", func(s *Scenario) {
			s.Owners = 2
			// Two daemons that die leave two tickets, which expire one after the other, after 3 seconds each.
			s.Keys, s.Several, s.Holding, s.Leavers, s.Modes, s.Announcements, s.Asleep = 2, 6, 1, 6, shared, true, 7*time.Second
			s.Extended = 3
			s.Faults = []fault{{500 * time.Millisecond, cut}, {700 * time.Millisecond, sleep}, {700 * time.Millisecond, stop}, {time.Second, partition}, {3 * time.Second, die}}
		}),
		waitBase("fair", func(s *Scenario) {
			s.Keys, s.Several, s.Fair, s.Leavers, s.Modes, s.Holding = 2, 6, 1, 6, shared, 8
			s.Slow, s.Stall, s.Split, s.Reliable, s.Announcements, s.Asleep = 0, 0, 0, true, true, time.Second
		}),
		waitBase("unscripted", func(s *Scenario) { // masters lose their scripts, and every client is served all the same
			s.Keys, s.Several, s.Fair, s.Leavers, s.Modes, s.Holding, s.Announcements = 4, 6, 2, 6, shared, 8, true
			s.Slow, s.Stall, s.Split, s.Undelivered, s.Reliable, s.Asleep = 0, 0, 0, 0, true, time.Second
			s.Faults = []fault{{20 * time.Millisecond, loseScripts}}
		}),
		waitBase("unasked", func(s *Scenario) { // some with FAIR, beside readers and others without
			s.Keys, s.Several, s.Fair, s.Leavers, s.Modes, s.Announcements = 2, 6, 3, 6, shared, true
			s.Clients, s.Slow, s.Stall, s.Split, s.Reliable, s.Asleep = []ClientGroup{{12, newWaiting}}, 0, 0, 0, true, 4*time.Second
		}),
		waitBase("queue", func(s *Scenario) {
			s.Keys, s.Several, s.Fair, s.Leavers, s.Modes, s.Announcements = 2, 6, 1, 4, shared, true
			s.Clients, s.Length, s.MaxWait, s.Asleep, s.Slow = []ClientGroup{{12, newWaiting}}, 10*time.Second, 8*time.Second, 5*time.Second, 10
			s.ClockSpread = 40 * time.Millisecond // so that daemons that reach different masters disagree about the time
			s.Faults = []fault{{700 * time.Millisecond, cut}, {time.Second, stop}, {time.Second, sleep}, {2 * time.Second, partition}, {3 * time.Second, die}}
		}),
		waitBase("stays", func(s *Scenario) { // keys stay taken after the validity, also several together, and waiters come when that is over
			s.Keys, s.Several, s.Fair, s.Delays, s.Owners, s.Modes, s.Announcements, s.Asleep = 3, 3, 4, 2, 2, append(shared, redlock.Permits), true, 6*time.Second
			s.MinTTL, s.MaxTTL, s.Length, s.Named, s.Holding, s.Undelivered = 60*time.Millisecond, time.Second, 10*time.Second, 0, 0, 0
			s.Faults = []fault{{800 * time.Millisecond, cut}, {2 * time.Second, partition}, {time.Second, stop}, {2 * time.Second, restart}}
		}),
		waitBase("throng", func(s *Scenario) { // so many requests, that several leave a daemon in one flush
			s.Keys, s.Several, s.Fair, s.Prompt, s.Named, s.Daemons = 12, 2, 2, true, 0, 2
			s.Clients, s.Length, s.Slow, s.Asleep = []ClientGroup{{32, newWaiting}}, 5*time.Second, 10, 6*time.Second
			s.Faults = []fault{{500 * time.Millisecond, cut}, {800 * time.Millisecond, partition}, {time.Second, stop}}
		}),
		waitBase("askew", func(s *Scenario) { // one daemon is behind with all clocks
			s.Keys, s.Fair, s.Announcements, s.Named, s.Askew, s.Asleep = 1, 1, true, 0, 60*time.Millisecond, 2*time.Second
			s.Clients, s.Daemons = []ClientGroup{{8, newWaiting}}, 2
			s.Slow, s.Stall, s.Split, s.Undelivered = 0, 0, 0, 0
		}),
		waitBase("mute", func(s *Scenario) { // all announcements are lost, with leases that are longer than a poll
			s.Keys, s.Prompt, s.Undelivered, s.Announcements, s.AnnouncementsLost = 2, true, 0, true, 1
			s.Slow, s.Stall, s.Split, s.Reliable, s.Named = 0, 0, 0, true, 0
			s.MinTTL, s.MaxTTL, s.MaxWait, s.Length, s.Asleep = 15*time.Second, 20*time.Second, 20*time.Second, 30*time.Second, 9*time.Second
		}),
	}
}

// cycleScenarios have clients that wait for one another, daemons that end all waits, and
// clients that choose their tokens.
func cycleScenarios() []*Scenario {
	shared := []redlock.Kind{redlock.Exclusive, redlock.Shared}
	return []*Scenario{
		waitBase("cycles", func(s *Scenario) {
			s.Clients, s.Keys, s.Daemons, s.Modes, s.Announcements, s.Named = []ClientGroup{{10, newCycleClient}}, 4, 1, shared, true, 0
			s.Slow, s.Stall, s.Split, s.Undelivered, s.Reliable, s.Asleep = 0, 0, 0, 0, true, time.Second
			s.MinTTL, s.MaxTTL, s.MaxCycle, s.Length = 2*time.Second, 4*time.Second, 200*time.Millisecond, 3*time.Second
		}),
		waitBase("cyclefaults", func(s *Scenario) { // likewise, among faults
			s.Clients, s.Keys, s.Daemons, s.Modes, s.Announcements, s.Fair, s.Named = []ClientGroup{{12, newCycleClient}}, 4, 2, shared, true, 4, 0
			s.Undelivered, s.Asleep, s.MinTTL, s.MaxTTL, s.MaxCycle = 0, 6*time.Second, 300*time.Millisecond, 2*time.Second, 2*time.Second
			s.Faults = []fault{{500 * time.Millisecond, cut}, {time.Second, stop}, {time.Second, sleep}, {2 * time.Second, partition}, {2 * time.Second, die}}
		}),
		waitBase("rings", func(s *Scenario) { // of clients of several daemons
			s.Clients, s.Keys, s.Daemons, s.Modes, s.Announcements, s.Named = []ClientGroup{{6, newCycleClient}}, 4, 3, shared, true, 0
			s.Slow, s.Stall, s.Split, s.Undelivered, s.Reliable, s.Asleep = 0, 0, 0, 0, true, 2*time.Second
			s.MinTTL, s.MaxTTL, s.MaxCycle, s.FarCycles, s.Length = 5*time.Second, 8*time.Second, time.Second, true, 6*time.Second
		}),
		waitBase("ringfaults", func(s *Scenario) { // likewise, among faults
			s.Clients, s.Keys, s.Daemons, s.Modes, s.Announcements, s.Fair, s.Named = []ClientGroup{{12, newCycleClient}}, 4, 6, shared, true, 4, 0
			s.Undelivered, s.Asleep, s.MinTTL, s.MaxTTL, s.MaxCycle, s.Slow = 0, 6*time.Second, time.Second, 5*time.Second, 6*time.Second, 10
			s.Faults = []fault{{300 * time.Millisecond, cut}, {500 * time.Millisecond, stop}, {time.Second, sleep}, {time.Second, partition}, {2 * time.Second, die}}
		}),
		waitBase("drain", func(s *Scenario) {
			s.Keys, s.Several, s.Fair, s.Leavers, s.Holding, s.Modes, s.Announcements = 2, 6, 2, 8, 3, shared, true
			s.Slow, s.Stall, s.Split, s.Reliable, s.Asleep, s.Length = 0, 0, 0, true, time.Second, 8*time.Second
			s.Faults = []fault{{time.Second, drain}}
		}),
		waitBase("leave", func(s *Scenario) { // likewise, among faults
			s.Owners = 2
			s.Keys, s.Several, s.Fair, s.Leavers, s.Holding, s.Modes, s.Announcements, s.Asleep = 2, 6, 2, 8, 3, shared, true, 5*time.Second
			s.Clients, s.Length, s.Slow = []ClientGroup{{12, newWaiting}}, 8*time.Second, 10
			s.Faults = []fault{{time.Second, drain}, {700 * time.Millisecond, cut}, {time.Second, stop}, {2 * time.Second, partition}, {2 * time.Second, sleep}}
		}),
		waitBase("chosen", func(s *Scenario) { // FAIR with tokens of the clients' own
			s.Owners = 2
			s.Clients, s.Daemons, s.Chosen, s.Fair, s.Keys, s.Several, s.Modes = []ClientGroup{{6, newWaiting}}, 6, true, 1, 2, 6, shared
			s.Slow, s.Stall, s.Split, s.Undelivered, s.Reliable, s.Announcements, s.Asleep = 0, 0, 0, 0, true, true, time.Second
		}),
		waitBase("guests", func(s *Scenario) { // likewise, among faults
			s.Owners = 2
			s.Clients, s.Daemons, s.Chosen, s.Fair, s.Keys, s.Several, s.Modes = []ClientGroup{{6, newWaiting}}, 6, true, 1, 2, 6, shared
			s.Undelivered, s.Announcements, s.Asleep, s.Length, s.Leavers = 0, true, 5*time.Second, 10*time.Second, 8
			s.Faults = []fault{{700 * time.Millisecond, cut}, {time.Second, stop}, {2 * time.Second, sleep}, {2 * time.Second, partition}, {3 * time.Second, die}}
		}),
	}
}

// permitWaitScenarios have clients that wait for permits.
func permitWaitScenarios() []*Scenario {
	all := []redlock.Kind{redlock.Permits, redlock.Permits, redlock.Permits, redlock.Exclusive, redlock.Shared}
	return []*Scenario{
		waitBase("seats", func(s *Scenario) { // nothing but permits
			s.Keys, s.Fair, s.Leavers, s.Modes, s.Prompt, s.Announcements, s.Named = 2, 2, 6, all[:1], true, true, 0
			s.Slow, s.Stall, s.Split, s.Reliable, s.Asleep = 0, 0, 0, true, time.Second
			s.Length, s.MinTTL, s.MaxTTL, s.MaxWait = 2*time.Second, 8*time.Second, 10*time.Second, 8*time.Second
		}),
		waitBase("stalls", func(s *Scenario) { // permits beside other modes
			s.Keys, s.Several, s.Fair, s.Leavers, s.Modes, s.Holding, s.Announcements = 2, 6, 2, 6, all, 8, true
			s.Clients, s.Slow, s.Stall, s.Split, s.Reliable, s.Asleep = []ClientGroup{{12, newWaiting}}, 0, 0, 0, true, 6*time.Second
		}),
		waitBase("stands", func(s *Scenario) { // likewise, among faults
			s.Keys, s.Several, s.Fair, s.Leavers, s.Modes, s.Holding, s.Announcements = 2, 6, 1, 6, all, 8, true
			s.Clients, s.Length, s.MaxWait, s.Asleep, s.Slow = []ClientGroup{{12, newWaiting}}, 10*time.Second, 8*time.Second, 6*time.Second, 10
			s.Faults = []fault{{700 * time.Millisecond, cut}, {time.Second, stop}, {time.Second, sleep}, {2 * time.Second, partition}, {3 * time.Second, die}}
		}),
		waitBase("regulars", func(s *Scenario) { // with tokens of the clients' own
			s.Clients, s.Daemons, s.Chosen, s.Fair, s.Keys, s.Several, s.Modes = []ClientGroup{{6, newWaiting}}, 6, true, 1, 2, 6, all
			s.Slow, s.Stall, s.Split, s.Undelivered, s.Reliable, s.Announcements, s.Asleep = 0, 0, 0, 0, true, true, 6*time.Second
		}),
	}
}

// mixedWait is a scenario with waits of every kind, on few keys.
func mixedWait(name string, change func(*Scenario)) *Scenario {
	return waitBase(name, func(s *Scenario) {
		s.Modes = []redlock.Kind{redlock.Exclusive, redlock.Exclusive, redlock.Shared, redlock.Permits}
		s.Keys, s.Several, s.Fair, s.Leavers, s.Holding, s.Announcements = 2, 6, 2, 6, 6, true
		s.Clients, s.Length, s.MaxWait, s.Asleep = []ClientGroup{{10, newWaiting}}, 16*time.Second, 8*time.Second, 6*time.Second
		change(s)
	})
}

// mixedRings is likewise, with clients that wait for one another.
func mixedRings(name string, faults ...fault) *Scenario {
	return mixedWait(name, func(s *Scenario) {
		s.Clients, s.Several, s.Fair, s.Leavers, s.Holding, s.Named, s.Modes = []ClientGroup{{10, newCycleClient}}, 0, 4, 0, 0, 0, s.Modes[1:3]
		s.Keys, s.Undelivered, s.MinTTL, s.MaxTTL, s.MaxCycle, s.Faults = 4, 0, 300*time.Millisecond, 3*time.Second, 2*time.Second, faults
	})
}

// forgetfulWaitScenarios have clients that wait while masters lose their memory.
func forgetfulWaitScenarios() []*Scenario {
	return []*Scenario{
		mixedWait("oblivion", func(s *Scenario) {
			s.Faults = []fault{{300 * time.Millisecond, remember}, {300 * time.Millisecond, restart}, {300 * time.Millisecond, flushSometimes}, {2 * time.Second, cut}}
		}),
		mixedWait("lapses", func(s *Scenario) { // between two commands of a flush
			s.Split, s.Inside = 3, flushInside
		}),
		mixedWait("blanks", func(s *Scenario) { // all masters at once
			s.Faults = []fault{{time.Second, restartAll}, {2 * time.Second, cut}, {3 * time.Second, partition}}
		}),
		mixedWait("ledgers", func(s *Scenario) { // durable masters, some of which lie
			s.Durable = true
			s.Faults = []fault{{400 * time.Millisecond, restartDurable}, {50 * time.Millisecond, remember}, {2 * time.Second, lie}, {2 * time.Second, cut}}
		}),
		mixedWait("recalled", func(s *Scenario) { // a daemon is behind with all clocks, and masters forget the queues
			s.Keys, s.Several, s.Fair, s.Named, s.Holding, s.Askew, s.Daemons, s.Modes = 1, 0, 1, 0, 0, 60*time.Millisecond, 2, nil
			s.Faults = []fault{{100 * time.Millisecond, flushSometimes}, {500 * time.Millisecond, partition}}
		}),
		mixedRings("ringsforget", fault{100 * time.Millisecond, remember}, fault{300 * time.Millisecond, restart}, fault{time.Second, flushSometimes}, fault{2 * time.Second, cut}),
	}
}

// clockWaitScenarios have clients that wait while clocks are set.
func clockWaitScenarios() []*Scenario {
	return []*Scenario{
		mixedWait("waitsteps", func(s *Scenario) {
			s.Faults = []fault{{2500 * time.Millisecond, stepClock}, {2 * time.Second, cut}}
		}),
		mixedWait("waitabsence", func(s *Scenario) {
			s.Faults = []fault{{500 * time.Millisecond, absent}, {2 * time.Second, cut}}
		}),
		mixedWait("waitzones", func(s *Scenario) { // the clocks of all masters, by seconds
			s.Length, s.Faults = 30*time.Second, []fault{{5 * time.Second, setGroupClocks}, {2 * time.Second, cut}}
		}),
		mixedWait("waitripples", func(s *Scenario) {
			s.MinTTL, s.MaxTTL, s.Length, s.Keys = 200*time.Millisecond, 2500*time.Millisecond, 40*time.Second, 3
			s.Faults = []fault{{300 * time.Millisecond, ripple}}
		}),
		mixedWait("waitcreep", func(s *Scenario) {
			s.MinTTL, s.MaxTTL, s.Length, s.Keys = 200*time.Millisecond, 2*time.Second, 20*time.Second, 3
			s.Faults = []fault{{1500 * time.Millisecond, creep}, {500 * time.Millisecond, stop}}
		}),
		mixedWait("waitrates", func(s *Scenario) {
			s.RatePPM = 4500
			s.Faults = []fault{{time.Second, stop}, {2 * time.Second, cut}}
		}),
		mixedWait("waitjumps", func(s *Scenario) {
			s.Holding, s.Asleep = 2, 8*time.Second
			s.Faults = []fault{{700 * time.Millisecond, jump}, {700 * time.Millisecond, suspend}, {time.Second, sleep}, {2 * time.Second, cut}}
		}),
		mixedRings("ringsteps", fault{2500 * time.Millisecond, stepClock}, fault{2 * time.Second, cut}),
	}
}

// waitBase is what scenarios with waits have in common.
func waitBase(name string, change func(*Scenario)) *Scenario {
	return base(name, func(s *Scenario) {
		s.Clients, s.MaxWait = []ClientGroup{{8, newWaiting}}, 6*time.Second
		change(s)
	})
}
