package redlock

import (
	"sync/atomic"

	"redlockd/pool"
)

type lockCounters struct {
	acquired, refused, noQuorum, expired, split   atomic.Int64
	released, extended, givenBack, undone         atomic.Int64
	lateGrants, secondSeals, thirdSeals, repaired atomic.Int64
	ids, idRounds, workStarted, workDone          atomic.Int64
	holdsLost                                     atomic.Int64
}

// Counters returns the counts since the start.
func (l *Locker) Counters() Counters {
	c := &l.counts
	return Counters{
		Acquired: c.acquired.Load(), Refused: c.refused.Load(), NoQuorum: c.noQuorum.Load(),
		Expired: c.expired.Load(), Split: c.split.Load(), Released: c.released.Load(),
		Extended: c.extended.Load(), GivenBack: c.givenBack.Load(), Undone: c.undone.Load(),
		LateGrants: c.lateGrants.Load(), SecondSeals: c.secondSeals.Load(), ThirdSeals: c.thirdSeals.Load(),
		Repaired: c.repaired.Load(), IDs: c.ids.Load(), IDRounds: c.idRounds.Load(),
		WorkStarted: c.workStarted.Load(), WorkDone: c.workDone.Load(),
		HoldsLost: c.holdsLost.Load(),
	}
}

// MasterCounters count what passes between this daemon and its masters.
func (l *Locker) MasterCounters() pool.Counters { return l.pool.Counters() }

// MasterReport is one master with all that is measured of it, see pool.Report.
type MasterReport = pool.MasterReport

// Reports shows every master as database db's lanes see it.
func (l *Locker) Reports(db int) []MasterReport { return l.pool.Group(db).Reports() }

// InFlight is how many operations have not been answered yet.
func (l *Locker) InFlight() int { return int(l.inFlight.Load()) }
