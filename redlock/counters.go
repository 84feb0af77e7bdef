package redlock

import "redlockd/pool"

// Counters returns the counts since the start.
func (l *Locker) Counters() Counters {
	c := &l.engine.Counts
	return Counters{
		Acquired: c.Acquired.Load(), Refused: c.Refused.Load(), NoQuorum: c.NoQuorum.Load(),
		Expired: c.Expired.Load(), Split: c.Split.Load(), Released: c.Released.Load(),
		Extended: c.Extended.Load(), GivenBack: c.GivenBack.Load(), Undone: c.Undone.Load(),
		LateGrants: c.LateGrants.Load(), SecondSeals: c.SecondSeals.Load(), ThirdSeals: c.ThirdSeals.Load(),
		Repaired: c.Repaired.Load(), IDs: c.IDs.Load(), IDRounds: c.IDRounds.Load(),
		WorkStarted: c.WorkStarted.Load(), WorkDone: c.WorkDone.Load(),
		HoldsLost: c.HoldsLost.Load(), Held: l.Held(), HeldFor: l.HeldFor(),
	}
}

// MasterCounters count what passes between this daemon and its masters.
func (l *Locker) MasterCounters() pool.Counters { return l.engine.Pool.Counters() }

// MasterReport is one master with all that is measured of it, see pool.Report.
type MasterReport = pool.MasterReport

// Reports shows every master as database db's lanes see it.
func (l *Locker) Reports(db int) []MasterReport { return l.engine.Pool.Group(db).Reports() }

// InFlight is how many operations have not been answered yet.
func (l *Locker) InFlight() int { return l.engine.InFlight() }
