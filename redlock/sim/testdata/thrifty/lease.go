// The locks of a study, see redlock/THRIFTY.md.

package lease

import (
	"errors"
	"time"

	"redlockd/pool"
	"redlockd/redlock/engine"
)

// Sparing: a plain exclusive lock with a token of the daemon's own begins with a bare quorum.
func (a *lockBallot) Sparing() (key string, lanes uint16, hedged, spares bool) {
	r := &a.call.request
	plain := r.Mode == Exclusive && !r.Fair && len(r.More) == 0 && r.Token == "" && r.Hold == nil && r.Script == nil
	return a.key, 0, true, plain || pool.Thrifty.All
}

// Sparing: a release goes where the ballot of its lease went.
func (r *release) Sparing() (key string, lanes uint16, hedged, spares bool) {
	return r.key, r.first, false, r.first != 0
}

// firstLanes are the masters that can have a copy by this daemon; 0 = all.
func (l *Leases) firstLanes(known leaseRecord) uint16 {
	if known.made == nil || known.copies == allLanes || pool.Thrifty.ReleaseAll {
		return 0
	}
	if sent, all := known.made.ballot.Sent(); sent != all {
		pool.Counts["released before completion"]++
		return sent
	}
	return 0
}

// completeSoon sends the request to the other masters when the lock has lived for a while.
func (a *lockBallot) completeSoon() {
	if sent, all := a.ballot.Sent(); sent == all || pool.Thrifty.Complete == 0 {
		return
	}
	e := a.call.leases.engine
	e.Clock.AfterFunc(pool.Thrifty.Complete, func() {
		if a.wanted() {
			a.ballot.SendRest("completion", true)
		}
	})
}

// wanted reports whether the lease still runs and no extension has repaired it.
func (a *lockBallot) wanted() bool {
	if pool.Thrifty.Uncalled {
		return true
	}
	for _, id := range a.ids() {
		known, ok := a.call.leases.records.find(id)
		if !ok || known.until <= a.call.leases.engine.Recent() || known.copies == allLanes {
			return false
		}
	}
	return true
}

// later is how much of the lease is over for a lane that was not one of the first, and whether
// the copy is not wanted any more.
func (a *lockBallot) later(lane int, now time.Duration) (spent time.Duration, stop bool) {
	if a.ballot.First(lane) {
		return 0, false
	}
	a.ballot.Lock()
	won := a.won
	a.ballot.Unlock()
	return now - a.start, won && !a.wanted()
}

// maker is the ballot whose masters a release needs; nil if a client chose the token, and may use
// it through other daemons.
func (a *lockBallot) maker() *lockBallot {
	if a.call.request.Token != "" {
		return nil
	}
	return a
}

func (c *acquireCall) study(err error) {
	now := c.leases.engine.Clock.Now()
	var expired *engine.Expired
	var unknown *engine.NoQuorum
	switch {
	case err == nil:
		pool.Counts["granted"]++
		pool.Spans["acquire"] = append(pool.Spans["acquire"], now-c.began)
	case errors.Is(err, engine.ErrHeld):
		pool.Counts["held"]++
	case errors.As(err, &unknown):
		pool.Counts["acquires without quorum"]++
	case errors.As(err, &expired):
		pool.Counts["expired"]++
	default:
		pool.Counts["other errors"]++
	}
}

func (e *extension) study(err error) {
	var unknown *engine.NoQuorum
	known, ok := e.leases.records.find(e.ids[0])
	runs := ok && known.until > e.leases.engine.Clock.Now()
	switch {
	case err == nil:
		pool.Counts["extended"]++
	case errors.Is(err, engine.ErrNotHeld) && runs:
		pool.Counts["extensions lost"]++
	case errors.As(err, &unknown) && runs:
		pool.Counts["extensions without quorum"]++
	}
}

func (r *release) study() {
	pool.Counts["releases"]++
	pool.Spans["release"] = append(pool.Spans["release"], r.leases.engine.Clock.Now()-r.start)
}
