// What follows a ballot that gave no lease: an answer, or another ballot.
package redlock

import (
	"errors"
	"time"
)

// fail takes back what was taken and tells the caller, or tries again.
func (a *attempt) fail(v verdict) {
	a.takeBack()
	l := a.call.locker
	if v == unknown {
		note := ""
		if a.tally.yes >= a.tally.quorum {
			note = "a quorum said yes, but no fence could be had in time"
		}
		a.call.finish(Grant{}, a.call.undecided(a, note))
		return
	}
	next, err := a.form.after(a, v)
	if errors.Is(err, ErrHeld) {
		err = a.call.inVain(a, err)
	}
	if v == split {
		l.counts.split.Add(1)
	}
	switch {
	case errors.Is(err, ErrHeld):
		l.counts.refused.Add(1)
		fallthrough
	case err != nil:
		a.call.finish(Grant{}, err)
	case v == split:
		a.call.again(a, next)
	default:
		a.call.attempt(nil, next)
	}
}

// inVain is what is said instead of no: to who was the writer, no would mean that it
// still is.
func (c *acquire) inVain(a *attempt, no error) error {
	if !c.stepping.Load() {
		return no
	}
	return c.undecided(a, "")
}

// undecided is what is said where the masters could not decide.
func (c *acquire) undecided(a *attempt, note string) error {
	stepping := c.stepping.Load()
	if stepping {
		note = "the writer has begun to step down and is at most a reader from here on; ask again, or release it"
	}
	err := c.locker.noQuorum(&a.missing, note)
	err.stepping = stepping
	return err
}

// oddMost tells whether most masters keep something at a key that is no lock.
func (a *attempt) oddMost() bool { return a.odd > a.tally.n-a.tally.quorum }

// again tries once more after a split vote: contenders that each hold a
// minority must not give up together. Delays are random and double; the time
// for it is one master timeout.
func (c *acquire) again(a *attempt, next form) {
	delay := time.Millisecond << min(c.tries, 6)
	delay = delay/2 + c.locker.pool.Jitter(delay)
	if c.locker.clock.Now()+delay > c.began+c.locker.late {
		err := c.inVain(a, ErrHeld)
		if errors.Is(err, ErrHeld) {
			c.locker.counts.refused.Add(1)
		}
		c.finish(Grant{}, err)
		return
	}
	c.locker.clock.AfterFunc(delay, func() { c.attempt(nil, next) })
}
