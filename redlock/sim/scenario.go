package sim

import (
	"slices"
	"time"

	"redlockd/redlock"
)

// Scenario is what is in a world and what goes wrong in it.
type Scenario struct {
	Name    string
	Masters int
	Daemons int
	Keys    int
	Clients []ClientGroup
	Faults  []fault
	Inside  func(*World, *server) // a fault between two commands of a flush
	Settle  func(*World)          // what operators do when all faults have ended
	Length  time.Duration         // of the faults; then the world comes to rest

	MinTTL, MaxTTL, MaxKeep time.Duration
	MaxFlush                int

	Split       int             // one flush in so many arrives in pieces; 0 = none
	Stall       int             // one flush in so many leaves late
	Slow        int             // one message in so many takes long
	Unread      int             // one answer in so many is read 20 to 400 ms after it has arrived
	Named       int             // one acquire in so many brings its own token
	GivesBack   bool            // the daemon of a client that gave up gives the grant back when it notices
	Loyal       bool            // a client that gave up uses the same daemon again
	Restless    bool            // a token is tried again with another ttl
	Impatient   int             // one acquire in so many is given up within milliseconds and repeated at another daemon
	Undelivered int             // one grant in so many finds its client gone
	Delays      int             // one acquire in so many has a DELAY
	Keeps       int             // one release in so many has a KEEP
	MaxHold     time.Duration   // clients hold their locks on and on, and for so long at most; 0 = without an end
	Regrets     bool            // a client that gave up releases, as often as it repeats the acquire
	Askew       time.Duration   // the first daemon gets every answer so much later: it estimates all clocks to be behind
	RatePPM     int             // clocks run this much too fast or too slow, at most
	Distances   []time.Duration // one way to each master takes so much longer: there are several flushes under way
	ClockSpread time.Duration

	Counters int  // of ids; 0 = 2
	Idle     bool // each of them is used now and then only; Counters is a multiple of idleTurns
	Pieces   int  // of work at a time; 0 = 3
	Overdue  bool // workers mostly come back when their attempt is long over

	Modes  []redlock.Kind // of locks; none = exclusive
	Owners int            // of reentrant locks: most readers are levels of one of so many; 0 = readers

	MaxWait           time.Duration // of those that wait; 0 = no client waits
	Turn              time.Duration // a client that tries again and again is granted the lock within it; 0 = not required
	Asleep            time.Duration // a free key may be waited for so long: what a lost wake-up costs
	Announcements     bool          // masters announce keys that change
	AnnouncementsLost int           // one announcement in so many is lost
	AnnouncementsLate int           // one announcement in so many is late
	Fair              int           // one request in so many is FAIR
	Holding           int           // one request in so many has HOLD: it is renewed as long as its client is there
	Extended          int           // one in so many steps of a holder with HOLD extends it, through any daemon
	Leavers           int           // one request in so many has a client that leaves
	Several           int           // one request in so many is for two keys
	Prompt            bool          // locks are released at once, none is left to expire
	Chosen            bool          // every client has a daemon of its own, and a token for each of its waits, FAIR or not
	MaxCycle          time.Duration // a cycle of waits may last so long
	FarCycles         bool          // that goes for those over several daemons, too
	Wiped             bool          // an operator deletes locks by hand: exclusion is not required then

	Groups   bool // a second group of as many masters: each has half of the slots
	OtherMap bool // the last daemon has them the other way round
	Movers   int  // operators that move slots between them

	NotBootstrapped bool     // without a bootstrap, the masters are quarantined first
	Evicts          bool     // masters evict keys just before a daemon reads their statistics
	Durable         bool     // masters report that they keep what they answered
	Lists           []string // of masters, by name, that follow one another; the first daemon misses the changes
	LeftOut         bool     // the operator does not reach the masters that leave
	Alias           bool     // one daemon reaches one server under two names
	HighIDs         bool     // counters begin where doubles end
	Private         bool     // no two clients use the same key
	Rests           bool     // no memory is lost and no clock is set: leases rest on quorums of copies
	Reliable        bool     // nothing goes wrong: everything must be served
	Open            string   // why this scenario is measured and not required: an open finding, or an assumption it breaks
}

// ClientGroup is some clients of one kind.
type ClientGroup struct {
	Number int
	New    func() client
}

// age is how old a memory must be before its master votes, see pool.
func (s *Scenario) age() time.Duration { return s.MaxTTL + s.MaxTTL/100 + 2*time.Second }

func (s *Scenario) think() time.Duration {
	if s.Movers > 0 { // a move takes seconds
		return 40 * time.Millisecond
	}
	return 8 * time.Millisecond
}

// latency is how long one way takes.
func (s *Scenario) latency(w *World) time.Duration {
	if w.chance(s.Slow) && !w.calm {
		return w.between(time.Millisecond, 45*time.Millisecond)
	}
	return 30*time.Microsecond + time.Duration(w.random.IntN(170))*time.Microsecond
}

// farthest is the longest distance.
func (s *Scenario) farthest() time.Duration {
	if len(s.Distances) == 0 {
		return 0
	}
	return slices.Max(s.Distances)
}

// fault is a failure that happens again and again until the world is calm.
type fault struct {
	every time.Duration // on average
	do    func(w *World)
}

func (f fault) start(w *World) {
	var again func()
	again = func() {
		if w.calm {
			return
		}
		f.do(w)
		w.after(w.between(f.every/4, f.every*7/4), nil, again)
	}
	w.after(w.between(0, f.every), nil, again)
}
