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
		if err := a.foreignQueue(); err != nil {
			a.call.finish(Grant{}, err)
			return
		}
		if a.call.request.repeats() && !a.call.downgrading.Load() && a.ballot.Repeat(&a.call.unanswered, func() { a.call.try(nil) }) {
			return
		}
		note := ""
		if a.ballot.Tally.Yes >= a.ballot.Tally.Quorum {
			note = "a quorum said yes, but no fence could be had in time"
		}
		a.call.finish(Grant{}, a.call.undecided(a, note))
		return
	}
	next, err := a.mode.after(a, v)
	if errors.Is(err, engine.ErrHeld) {
		err = a.call.refusalError(a, a.refusal())
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

// refusal is ErrHeld or, if that may be why, ErrBehind.
func (a *lockBallot) refusal() error {
	a.ballot.Lock()
	defer a.ballot.Unlock()
	if a.queue != nil && a.queue.behind > 0 {
		return ErrBehind
	}
	return engine.ErrHeld
}

// refusalError is the error for a refusal. During a downgrade it is an unknown outcome instead: to the
// former writer, a plain no would mean that it still is the writer. So it is with a value after another ballot.
func (c *acquireCall) refusalError(a *lockBallot, no error) error {
	if !c.downgrading.Load() && !(c.unanswered != 0 && c.request.Valued) {
		return no
	}
	return c.undecided(a, "the masters were too slow at first, and copies of that attempt may refuse this one until they end; try again")
}

// undecided is the error for a ballot that the masters could not decide.
func (c *acquireCall) undecided(a *lockBallot, note string) error {
	stepping := c.downgrading.Load()
	if stepping {
		note = "the writer is being downgraded and is at most a reader from now on; try again, or release it"
	}
	err := a.ballot.NoQuorum(note)
	err.Downgrading = stepping
	return err
}

// again starts another ballot after a split vote: contenders that each hold a minority must not
// give up together. Delays are random and double; the time for all ballots of a try is
// one master timeout.
func (c *acquireCall) again(a *lockBallot, next lockMode) {
	delay := c.leases.engine.SplitPause(c.tries)
	if c.leases.engine.Clock.Now()+delay > c.began+c.leases.engine.MasterTimeout {
		err := c.refusalError(a, engine.ErrHeld)
		if errors.Is(err, engine.ErrHeld) {
			c.leases.engine.Counts.Refused.Add(1)
		}
		c.finish(Grant{}, err)
		return
	}
	c.leases.engine.Clock.AfterFunc(delay, func() { c.startBallot(nil, next) })
}
