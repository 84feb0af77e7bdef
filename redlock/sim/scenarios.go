package sim

import (
	"time"

	"redlockd/redlock"
)

// Scenarios is everything that is played. Each is played with 3 and with 5 masters, unless it
// changes the masters.
func Scenarios() []*Scenario {
	var out []*Scenario
	for _, some := range []func() []*Scenario{quietScenarios, linkScenarios, windowScenarios, memoryScenarios, clockScenarios, modeScenarios, kindScenarios, tokenScenarios, waitScenarios, cycleScenarios, permitWaitScenarios, forgetfulWaitScenarios, clockWaitScenarios, turnScenarios, clingScenarios, dropInScenarios, groupScenarios, slotScenarios} {
		for _, s := range some() {
			five := *s
			five.Name, five.Masters = s.Name+"-5", 5
			s.Name += "-3"
			out = append(out, s, &five)
		}
	}
	return append(append(out, membershipScenarios()...), carryingScenarios()...)
}

// quietScenarios have no faults: every client must be served.
func quietScenarios() []*Scenario {
	return []*Scenario{
		base("calm", func(s *Scenario) {
			s.Split, s.Stall, s.Slow, s.Undelivered, s.Reliable = 10, 0, 0, 50, true
			s.Clients = []ClientGroup{{8, newLocking}, {2, newCounting}}
			s.MaxTTL, s.Length, s.HighIDs = 10*time.Second, 3*time.Second, true
		}),
		base("private", func(s *Scenario) {
			// No grant is given back by a daemon on its own: what is left of that on a
			// master that had not answered yet may keep the next client's copy away from it.
			s.Private, s.Slow, s.Stall, s.Split, s.Reliable, s.Daemons, s.Undelivered = true, 6, 0, 0, true, 1, 0
			s.MinTTL, s.MaxTTL, s.Length = 5*time.Second, 10*time.Second, 4*time.Second
		}),
	}
}

// linkScenarios have faults of connections, and processes that stand still.
func linkScenarios() []*Scenario {
	return []*Scenario{
		base("links", func(s *Scenario) {
			s.Faults = []fault{{400 * time.Millisecond, cut}, {700 * time.Millisecond, partition}, {time.Second, stop}}
		}),
		base("hot", func(s *Scenario) {
			s.Keys, s.Daemons = 1, 4
			s.Faults = []fault{{500 * time.Millisecond, cut}, {800 * time.Millisecond, stop}}
		}),
		base("tries", func(s *Scenario) { // more tries for one key than a daemon sends to the masters at once
			s.Keys, s.Daemons, s.Named, s.Length = 1, 2, 0, 4*time.Second
			s.Clients = []ClientGroup{{60, newLocking}}
			s.Faults = []fault{{500 * time.Millisecond, cut}, {800 * time.Millisecond, stop}}
		}),
		base("slow", func(s *Scenario) { s.Slow, s.Stall, s.Split = 8, 40, 4 }),
		base("orphans", func(s *Scenario) {
			s.MinTTL, s.MaxTTL, s.Length, s.Keys = 8*time.Second, 10*time.Second, 3*time.Second, 40
			s.Faults = []fault{{250 * time.Millisecond, cut}, {400 * time.Millisecond, partition}, {300 * time.Millisecond, stop}}
			s.Split, s.Slow, s.Undelivered = 5, 20, 20
		}),
		base("repairs", func(s *Scenario) {
			s.MinTTL, s.MaxTTL, s.Length, s.Keys, s.Daemons, s.Slow = 8*time.Second, 10*time.Second, 4*time.Second, 20, 1, 3
			s.Faults = []fault{{300 * time.Millisecond, flushSometimes}, {500 * time.Millisecond, stop}}
		}),
		base("stragglers", func(s *Scenario) {
			s.MinTTL, s.MaxTTL, s.Keys, s.Slow = 20*time.Millisecond, 250*time.Millisecond, 2, 10
			s.Faults = []fault{{150 * time.Millisecond, partition}, {300 * time.Millisecond, cut}, {400 * time.Millisecond, stop}}
		}),
		base("foreign", func(s *Scenario) {
			s.Clients = []ClientGroup{{6, newLocking}, {3, newForeign}}
			s.Keys = 2
			s.Faults = []fault{{500 * time.Millisecond, stop}, {time.Second, partition}}
		}),
		base("deaths", func(s *Scenario) {
			s.Faults = []fault{{500 * time.Millisecond, die}, {700 * time.Millisecond, stop}, {time.Second, cut}}
		}),
		base("everything", func(s *Scenario) {
			s.Length, s.Daemons = 20*time.Second, 4
			s.Clients = []ClientGroup{{8, newLocking}, {2, newCounting}, {2, newWorking}}
			s.Faults = []fault{
				{2 * time.Second, cut}, {3 * time.Second, partition}, {3 * time.Second, stop}, {4 * time.Second, sleep},
				{500 * time.Millisecond, remember}, {time.Second, restart}, {time.Second, flushSometimes}, {5 * time.Second, jump},
			}
			s.Split, s.Slow, s.Stall = 6, 40, 200
		}),
		base("delays", func(s *Scenario) { // locks whose keys stay taken after the validity, or after the release
			s.Delays, s.Keeps, s.Modes, s.Length, s.Keys = 2, 2, []redlock.Kind{redlock.Exclusive, redlock.Exclusive, redlock.Shared, redlock.Permits}, 10*time.Second, 3
			s.MinTTL, s.MaxTTL = 60*time.Millisecond, 2*time.Second
			s.Faults = []fault{{800 * time.Millisecond, cut}, {2 * time.Second, partition}, {time.Second, stop}, {2 * time.Second, flushSometimes}, {2 * time.Second, restart}}
		}),
		base("aliased", func(s *Scenario) {
			s.Alias = true
		}),
	}
}

// windowScenarios have distant masters, so that several flushes of a connection are under way.
func windowScenarios() []*Scenario {
	distant := func(name string, change func(*Scenario)) *Scenario {
		return base(name, func(s *Scenario) {
			s.Distances = []time.Duration{500 * time.Microsecond, 2 * time.Millisecond, 9 * time.Millisecond, 600 * time.Microsecond, 25 * time.Millisecond}
			s.Clients = []ClientGroup{{20, newLocking}, {2, newCounting}, {2, newWorking}}
			s.Keys, s.Modes = 8, []redlock.Kind{redlock.Exclusive, redlock.Shared, redlock.Permits}
			change(s)
		})
	}
	return []*Scenario{
		distant("far", func(s *Scenario) { // connections, processes and scripts
			s.Faults = []fault{{500 * time.Millisecond, cut}, {700 * time.Millisecond, stop}, {time.Second, partition}, {300 * time.Millisecond, loseScripts}}
		}),
		distant("farscripts", func(s *Scenario) { // scripts go and come between two commands of a window
			s.Slow, s.Split, s.Named, s.Stall, s.Keys, s.Undelivered, s.Inside = 6, 2, 0, 30, 40, 20, swapScripts
			s.MinTTL, s.MaxTTL, s.Length = 8*time.Second, 10*time.Second, 3*time.Second
			s.Faults = []fault{{50 * time.Millisecond, loseScripts}, {700 * time.Millisecond, cut}, {700 * time.Millisecond, stop}}
		}),
		distant("farmemory", func(s *Scenario) {
			s.Length, s.Split, s.Inside = 16*time.Second, 3, flushInside
			s.Faults = []fault{{300 * time.Millisecond, remember}, {300 * time.Millisecond, restart}, {500 * time.Millisecond, awaken}, {2 * time.Second, cut}}
		}),
		distant("farclocks", func(s *Scenario) {
			s.Length = 16 * time.Second
			s.Faults = []fault{{2500 * time.Millisecond, stepClock}, {5 * time.Second, jump}, {2 * time.Second, sleep}, {2 * time.Second, cut}, {time.Second, stop}}
		}),
	}
}

// memoryScenarios have masters that lose their memory.
func memoryScenarios() []*Scenario {
	return []*Scenario{
		base("memory", func(s *Scenario) {
			s.Length = 16 * time.Second
			s.Faults = []fault{{300 * time.Millisecond, remember}, {300 * time.Millisecond, restart}, {300 * time.Millisecond, flushSometimes}, {2 * time.Second, cut}}
		}),
		base("inside", func(s *Scenario) {
			s.Length, s.Split, s.Inside = 16*time.Second, 3, flushInside
		}),
		base("total", func(s *Scenario) {
			s.Length, s.Faults = 16*time.Second, []fault{{time.Second, restartAll}, {2 * time.Second, cut}}
		}),
		base("durable", func(s *Scenario) {
			s.Durable, s.Length = true, 10*time.Second
			s.Faults = []fault{{400 * time.Millisecond, restartDurable}, {time.Second, stop}}
			s.Clients = []ClientGroup{{6, newLocking}, {2, newCounting}}
		}),
		base("promotion", func(s *Scenario) {
			s.Durable, s.Length = true, 12*time.Second
			s.Faults = []fault{{50 * time.Millisecond, remember}, {time.Second, promote}, {2 * time.Second, cut}}
		}),
		base("liar", func(s *Scenario) {
			s.Durable, s.Length = true, 12*time.Second
			s.Faults = []fault{{50 * time.Millisecond, remember}, {500 * time.Millisecond, lie}, {2 * time.Second, cut}}
		}),
		base("backups", func(s *Scenario) {
			s.Durable, s.Length, s.Split, s.Stall, s.Slow = true, 20*time.Second, 0, 0, 0
			s.Clients = []ClientGroup{{6, newLocking}, {2, newCounting}}
			s.Faults = []fault{{time.Second, backUps}}
		}),
		base("awakened", func(s *Scenario) {
			s.Length = 12 * time.Second
			s.Faults = []fault{{150 * time.Millisecond, remember}, {500 * time.Millisecond, awaken}, {2 * time.Second, cut}}
		}),
		base("evicted", func(s *Scenario) {
			s.Length, s.Clients = 16*time.Second, []ClientGroup{{8, newLocking}, {2, newCounting}}
			s.Faults = []fault{{500 * time.Millisecond, evictUnseen}, {2 * time.Second, cut}}
		}),
		base("evicting", func(s *Scenario) { // one daemon: another one reads the statistics up to a second later
			s.Length, s.Daemons, s.Evicts = 16*time.Second, 1, true
			s.Faults = []fault{{2 * time.Second, cut}}
		}),
		base("unborn", func(s *Scenario) {
			s.NotBootstrapped, s.Length = true, 4*time.Second
			s.Faults = []fault{{700 * time.Millisecond, stop}}
		}),
	}
}

// clockScenarios have faults of the clocks of masters and of daemons.
func clockScenarios() []*Scenario {
	return []*Scenario{
		base("steps", func(s *Scenario) {
			s.Length, s.Faults = 16*time.Second, []fault{{2500 * time.Millisecond, stepClock}, {2 * time.Second, cut}}
		}),
		base("absence", func(s *Scenario) {
			s.Length, s.Faults = 16*time.Second, []fault{{500 * time.Millisecond, absent}, {2 * time.Second, cut}}
		}),
		base("overslept", func(s *Scenario) { // a clock is set while a daemon stands still, with its commands on their way
			s.Length, s.Keys, s.Slow, s.MinTTL = 16*time.Second, 2, 3, 600*time.Millisecond
			s.Faults = []fault{{100 * time.Millisecond, oversleep}}
		}),
		base("starved", func(s *Scenario) { // daemons read late again and again, masters stand still, too, and clocks are set meanwhile
			s.Length, s.Keys, s.Daemons, s.Slow, s.Unread, s.MinTTL = 16*time.Second, 2, 3, 20, 12, 300*time.Millisecond
			s.Clients = []ClientGroup{{8, newLocking}, {1, newCounting}, {1, newWorking}}
			s.Faults = []fault{{250 * time.Millisecond, sleep}, {500 * time.Millisecond, stop}, {2 * time.Millisecond, doze}}
		}),
		base("ripples", func(s *Scenario) { // clocks that are set by so little that it is tolerated, or slewed
			s.Length, s.Faults = 40*time.Second, []fault{{300 * time.Millisecond, ripple}, {30 * time.Second, cut}}
			s.Clients, s.MinTTL, s.MaxTTL, s.Keys = []ClientGroup{{6, newLocking}, {2, newWorking}}, time.Second, 2*time.Second, 3
		}),
		base("swell", func(s *Scenario) { // likewise, with readers and permits, and longer leases
			s.Length, s.Faults = 40*time.Second, []fault{{300 * time.Millisecond, ripple}}
			s.Modes = []redlock.Kind{redlock.Exclusive, redlock.Shared, redlock.Permits}
			s.MinTTL, s.MaxTTL = 200*time.Millisecond, 2500*time.Millisecond
		}),
		base("creep", func(s *Scenario) { // clocks that are slewed too far, of masters that leases need
			s.Length, s.Faults = 30*time.Second, []fault{{1500 * time.Millisecond, creep}, {200 * time.Millisecond, stop}}
			s.MinTTL, s.MaxTTL, s.Keys, s.Undelivered = 1800*time.Millisecond, 2*time.Second, 4, 0
		}),
		base("rates", func(s *Scenario) {
			s.RatePPM = 4500
			s.Faults = []fault{{time.Second, stop}, {2 * time.Second, cut}}
		}),
		base("jumps", func(s *Scenario) {
			s.Faults = []fault{{700 * time.Millisecond, jump}, {time.Second, sleep}, {2 * time.Second, cut}}
		}),
	}
}

// kindScenarios have clients of ids and of work.
func kindScenarios() []*Scenario {
	return []*Scenario{
		base("ids", func(s *Scenario) {
			s.Clients, s.Length = []ClientGroup{{6, newCounting}}, 16*time.Second
			s.Faults = []fault{{300 * time.Millisecond, restart}, {time.Second, stop}, {time.Second, cut}, {2 * time.Second, remember}}
		}),
		base("idle", func(s *Scenario) { // counters that rest for longer than a master is quarantined
			s.Clients, s.Length, s.Counters, s.Daemons, s.Slow = []ClientGroup{{8, newCounting}}, 20*time.Second, 150, 2, 20
			s.Faults = []fault{{400 * time.Millisecond, partition}, {400 * time.Millisecond, stop}, {500 * time.Millisecond, forget}}
		}),
		base("deletions", func(s *Scenario) { // counters are deleted while ids are drawn
			s.Clients, s.Length, s.Counters, s.Slow = []ClientGroup{{16, newCounting}, {16, newDeleting}}, 16*time.Second, 40, 4
			s.Faults = []fault{{500 * time.Millisecond, cut}, {150 * time.Millisecond, partition}, {700 * time.Millisecond, stop}}
		}),
		base("work", func(s *Scenario) {
			s.Clients, s.MaxKeep, s.MaxTTL = []ClientGroup{{6, newWorking}}, 10*time.Second, 500*time.Millisecond
			s.Faults = []fault{{500 * time.Millisecond, stop}, {500 * time.Millisecond, cut}, {time.Second, partition}}
		}),
		base("jobs", func(s *Scenario) {
			s.Clients, s.MaxKeep, s.MaxTTL, s.Length = []ClientGroup{{6, newWorking}}, 16*time.Second, 300*time.Millisecond, 24*time.Second
			s.Pieces = 80
			s.Faults = []fault{{500 * time.Millisecond, forget}, {200 * time.Millisecond, partition}, {300 * time.Millisecond, stop}, {time.Second, die}}
		}),
		base("rollbacks", func(s *Scenario) { // masters that come back with an older file, one after another or all at once
			s.Clients, s.MaxKeep, s.MaxTTL, s.Length = []ClientGroup{{8, newWorking}}, 12*time.Second, 300*time.Millisecond, 24*time.Second
			s.Pieces = 60
			s.Faults = []fault{{400 * time.Millisecond, save}, {500 * time.Millisecond, rollBack}, {time.Second, partition}}
		}),
		base("overdue", func(s *Scenario) { // workers whose attempts are taken over while masters forget the successors
			s.Clients, s.MaxKeep, s.MinTTL, s.MaxTTL, s.Length = []ClientGroup{{8, newWorking}}, 2*time.Second, 40*time.Millisecond, 150*time.Millisecond, 12*time.Second
			s.Pieces, s.Overdue = 6, true
			s.Faults = []fault{{150 * time.Millisecond, forget}, {100 * time.Millisecond, partition}}
		}),
	}
}

// tokenScenarios have tokens that the clients choose, and clients that repeat requests.
func tokenScenarios() []*Scenario {
	return []*Scenario{
		base("named", func(s *Scenario) {
			s.Named, s.Keys, s.Slow, s.Undelivered = 1, 2, 10, 0
			s.Faults = []fault{{500 * time.Millisecond, cut}, {700 * time.Millisecond, stop}}
		}),
		base("again", func(s *Scenario) {
			s.Named, s.Keys, s.Slow, s.Impatient, s.Loyal, s.Undelivered = 1, 2, 10, 3, true, 0
			s.Faults = []fault{{500 * time.Millisecond, cut}, {700 * time.Millisecond, stop}}
		}),
		base("retries", func(s *Scenario) {
			s.Named, s.Keys, s.Slow, s.Impatient, s.Undelivered = 1, 2, 10, 3, 0
		}),
		base("restless", func(s *Scenario) {
			s.Named, s.Keys, s.Slow, s.Undelivered, s.Restless = 1, 2, 10, 0, true
			s.Faults = []fault{{500 * time.Millisecond, cut}, {500 * time.Millisecond, stop}}
		}),
		base("regrets", func(s *Scenario) {
			s.Named, s.Keys, s.Slow, s.Impatient, s.Loyal, s.Regrets, s.Undelivered = 1, 2, 4, 2, true, true, 0
			s.MinTTL, s.MaxTTL, s.Length = 5*time.Second, 10*time.Second, 3*time.Second
		}),
		base("goners", func(s *Scenario) {
			s.Named, s.Keys, s.Slow, s.Impatient, s.Undelivered = 1, 2, 10, 3, 0
			s.GivesBack = true
		}),
	}
}

// modeScenarios have readers and permits.
func modeScenarios() []*Scenario {
	shared := []redlock.Kind{redlock.Exclusive, redlock.Shared, redlock.Shared}
	return []*Scenario{
		base("readers", func(s *Scenario) {
			s.Modes, s.Keys, s.Slow = shared, 3, 20
			s.Faults = []fault{{400 * time.Millisecond, cut}, {700 * time.Millisecond, stop}, {700 * time.Millisecond, partition}}
		}),
		base("owners", func(s *Scenario) { // levels of reentrant locks, also beside plain readers
			s.Modes, s.Keys, s.Slow, s.Owners = shared, 3, 20, 3
			s.Faults = []fault{{400 * time.Millisecond, cut}, {700 * time.Millisecond, stop}, {700 * time.Millisecond, partition}}
		}),
		base("turning", func(s *Scenario) {
			s.Clients, s.Modes, s.Keys, s.Daemons = []ClientGroup{{6, newModeChanger}}, shared, 8, 2
			s.Slow, s.Stall, s.Split, s.Undelivered, s.Reliable, s.Length = 0, 0, 0, 0, true, 12*time.Second
		}),
		base("contest", func(s *Scenario) { // readers that become writers, on few keys
			s.Clients, s.Modes, s.Keys, s.Slow, s.Length = []ClientGroup{{8, newModeChanger}}, shared, 2, 10, 10*time.Second
			s.Faults = []fault{{400 * time.Millisecond, cut}, {700 * time.Millisecond, stop}, {700 * time.Millisecond, partition}}
		}),
		base("eager", func(s *Scenario) { // likewise, and not waiting for the answer
			s.Clients, s.Modes, s.Keys, s.Slow, s.Impatient = []ClientGroup{{8, newModeChanger}}, shared, 2, 6, 2
			s.Faults = []fault{{400 * time.Millisecond, cut}, {700 * time.Millisecond, partition}}
		}),
		base("stepping", func(s *Scenario) { // tokens that request in all modes what they have just been given
			s.Clients, s.Modes, s.Keys, s.Length = []ClientGroup{{6, newStepper}}, append(shared, redlock.Permits), 2, 10*time.Second
			s.MinTTL, s.MaxTTL = 500*time.Millisecond, time.Second
			s.Faults = []fault{{time.Second, cut}, {time.Second, partition}}
		}),
		base("halves", func(s *Scenario) { // masters that forget half of an upgrade
			s.Clients, s.Modes, s.Keys, s.Slow, s.Length = []ClientGroup{{3, newLongWriter}, {4, newModeChanger}}, shared, 2, 10, 16*time.Second
			s.MinTTL, s.MaxTTL = 200*time.Millisecond, 400*time.Millisecond
			s.Faults = []fault{{200 * time.Millisecond, cut}, {300 * time.Millisecond, flushSometimes}, {300 * time.Millisecond, partition}}
		}),
		base("denials", func(s *Scenario) { // masters that refuse the command that makes a writer a reader
			s.Clients, s.Modes, s.Keys, s.Length = []ClientGroup{{6, newModeChanger}}, shared, 6, 10*time.Second
			s.Faults = []fault{{400 * time.Millisecond, deny}, {2 * time.Second, partition}}
		}),
		base("reloads", func(s *Scenario) { // masters that lose their scripts
			s.Modes, s.Keys, s.Slow, s.Split, s.Named = append(shared, redlock.Permits), 6, 6, 2, 0
			s.MinTTL, s.MaxTTL, s.Length, s.Undelivered, s.Inside = 8*time.Second, 10*time.Second, 3*time.Second, 20, swapScripts
			s.Faults = []fault{{50 * time.Millisecond, loseScripts}, {700 * time.Millisecond, cut}, {700 * time.Millisecond, stop}}
		}),
		base("permits", func(s *Scenario) {
			s.Modes, s.Keys, s.Slow = []redlock.Kind{redlock.Permits}, 2, 20
			s.Faults = []fault{{400 * time.Millisecond, cut}, {700 * time.Millisecond, stop}, {700 * time.Millisecond, partition}}
		}),
		base("modes", func(s *Scenario) {
			s.Modes, s.Keys, s.Length = append(shared, redlock.Permits), 3, 16*time.Second
			s.Faults = []fault{{500 * time.Millisecond, restart}, {500 * time.Millisecond, remember}, {time.Second, stop}, {time.Second, cut}}
		}),
	}
}

// base is what scenarios have in common.
func base(name string, change func(*Scenario)) *Scenario {
	s := &Scenario{
		Name: name, Masters: 3, Daemons: 3, Keys: 4, Length: 6 * time.Second,
		Clients: []ClientGroup{{8, newLocking}},
		MinTTL:  60 * time.Millisecond, MaxTTL: time.Second, MaxKeep: 4 * time.Second,
		Split: 10, Stall: 400, Slow: 60, Named: 6, Undelivered: 100,
		RatePPM: 100, ClockSpread: 5 * time.Millisecond,
	}
	change(s)
	return s
}
