package sim

import "time"

// dropInScenarios have clients that use the quorum as one Redis, beside clients of
// DLOCK and of the masters themselves, on the same keys.
func dropInScenarios() []*Scenario {
	all := habits{deletes: 3, retakes: true, alike: 8}
	return []*Scenario{
		base("dropin", func(s *Scenario) {
			s.Split, s.Stall, s.Slow, s.Undelivered, s.Reliable, s.Keys = 0, 0, 0, 50, true, 3
			s.MaxTTL, s.Length = 3*time.Second, 4*time.Second
			s.Clients = []ClientGroup{{3, newLocking}, {6, all.newClient}, {2, newMeddling}, {1, newAuditor}}
		}),
		base("deleted", func(s *Scenario) { // a holder is sure of its lock and sends DEL
			s.Split, s.Stall, s.Slow, s.Undelivered, s.Reliable, s.Keys = 0, 0, 0, 0, true, 1
			s.MinTTL, s.MaxTTL, s.Length = time.Second, 3*time.Second, 4*time.Second
			s.Clients = []ClientGroup{{1, newLocking}, {8, habits{deletes: 1}.newClient}, {1, newAuditor}}
		}),
		base("libraries", func(s *Scenario) {
			s.Keys, s.Slow, s.Rests = 2, 20, true
			s.Clients = []ClientGroup{{3, newLocking}, {6, all.newClient}, {2, newForeign}, {2, newMeddling}, {1, newStayingAuditor}}
			s.Faults = []fault{{400 * time.Millisecond, cut}, {700 * time.Millisecond, stop}, {time.Second, partition}, {2 * time.Second, die}}
		}),
		base("alike", func(s *Scenario) { // all clients have the same value
			s.Keys, s.MinTTL, s.MaxTTL, s.Slow = 2, 20*time.Millisecond, 300*time.Millisecond, 20
			s.Clients = []ClientGroup{{1, newLocking}, {8, habits{alike: 1}.newClient}, {1, newStayingAuditor}}
			s.Faults = []fault{{400 * time.Millisecond, cut}, {700 * time.Millisecond, stop}, {time.Second, partition}}
		}),
		base("longleases", func(s *Scenario) { // leases so long that what is left of them is seen
			s.MinTTL, s.MaxTTL, s.Length, s.Keys = 8*time.Second, 10*time.Second, 4*time.Second, 30
			s.Clients = []ClientGroup{{2, newLocking}, {6, habits{}.newClient}, {1, newAuditor}}
			s.Faults = []fault{{250 * time.Millisecond, cut}, {400 * time.Millisecond, partition}, {300 * time.Millisecond, stop}}
			s.Split, s.Slow, s.Undelivered, s.Named = 5, 20, 20, 4
		}),
		base("amnesia", func(s *Scenario) {
			s.Length = 16 * time.Second
			s.Clients = []ClientGroup{{3, newLocking}, {6, all.newClient}, {1, newAuditor}}
			s.Faults = []fault{{300 * time.Millisecond, remember}, {300 * time.Millisecond, restart}, {300 * time.Millisecond, flushSometimes}, {2 * time.Second, cut}}
		}),
	}
}
