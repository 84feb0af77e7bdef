// Handling of a ballot that gave no lease: an answer, or another ballot.

package lease

import (
	"errors"

	"redlockd/redlock/engine"
	"redlockd/redlock/quorum"
)

// fail takes back the copies, and then answers the caller or starts another ballot.
func (a *lockBallot) fail(v quorum.Result) {
	a.takeBack()
	a.call.copies |= a.lanesWithCopy()
	l := a.call.leases
	if v == quorum.Unknown {
		if r := &a.call.request; !r.Mode.waits() && a.mode.repeats(a) && a.ballot.Repeat(&a.call.unanswered, func() { a.call.try(nil) }) {
			return
		}
		note := ""
		if a.ballot.Tally.Yes >= a.ballot.Tally.Quorum {
			note = "a quorum said yes, but no fence could be had in time"
		}
		a.call.finish(Grant{}, a.mode.undecided(a, note))
		return
	}
	next, err := a.mode.after(a, v)
	if errors.Is(err, engine.ErrHeld) {
		err = a.mode.refused(a, v)
	}
	if v == quorum.Split {
		l.engine.Counts.Split.Add(1)
	}
	switch {
	case errors.Is(err, engine.ErrHeld):
		l.engine.Counts.Refused.Add(1)
		fallthrough
	case err != nil:
		a.call.finish(Grant{}, err)
	case v == quorum.Split:
		a.call.again(a, next)
	default:
		a.call.startBallot(nil, next)
	}
}

// again starts another ballot after a split vote: contenders that each hold a minority must not
// give up together. Pauses are random and double; the time for all ballots of a try is
// one master timeout.
func (c *acquireCall) again(a *lockBallot, next ballotMode) {
	pause := c.leases.engine.SplitPause(c.tries)
	if c.leases.engine.Clock.Now()+pause > c.began+c.leases.engine.MasterTimeout {
		err := a.mode.refused(a, quorum.Split)
		if errors.Is(err, engine.ErrHeld) {
			c.leases.engine.Counts.Refused.Add(1)
		}
		c.finish(Grant{}, err)
		return
	}
	c.leases.engine.Clock.AfterFunc(pause, func() { c.startBallot(nil, next) })
}
