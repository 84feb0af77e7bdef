// Dials: from an ended connection to one whose master may vote.

package pool

import (
	"context"
	"errors"
	"math"

	"redlockd/pool/admission"
)

func (l *lane) downLocked(s laneState, cause error) {
	l.state, l.cause, l.since = s, cause, l.group.now()
}

// dialSoon schedules the next dial: at once after an admitted connection ended
// for a reason that a new admission settles, otherwise with growing delays.
func (l *lane) dialSoon(cause error) {
	g := l.group
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed || l.left {
		return
	}
	if l.failedDials == 0 && !errors.Is(cause, errStalled) {
		l.submitDialLocked()
		return
	}
	delay := min(retryLimit(cause), minRetryDelay<<min(l.failedDials, 8))
	delay = delay/2 + g.pool.Jitter(delay/2+1)
	l.redial = g.pool.options.Clock.AfterFunc(delay, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if !g.closed && !l.left {
			l.submitDialLocked()
		}
	})
}

func (l *lane) submitDialLocked() {
	g := l.group
	g.counters.Dials++
	g.dialing.Add(1)
	err := g.pool.tasks.Submit(func() {
		defer g.dialing.Done()
		l.dialOnce()
	})
	if err != nil {
		g.dialing.Done()
	}
}

// dialOnce dials once, from the socket to the first vote.
func (l *lane) dialOnce() {
	g := l.group
	ctx, cancel := context.WithTimeout(context.Background(), 2*g.pool.options.DialTimeout())
	defer cancel()
	keepRefused(l, nil)
	link, err := g.pool.dial(ctx, l.master, g.db)
	var c *connection
	if err == nil {
		if c, err = (&handshake{lane: l, link: link}).verify(ctx); errors.As(err, new(*admission.Unfit)) {
			keepRefused(l, link)
		} else if err != nil {
			link.Close()
		}
	}
	if err != nil {
		l.dialFailed(err)
		return
	}
	c.activate()
}

// dialFailed records why a dial failed and answers the operations that waited for it.
func (l *lane) dialFailed(err error) {
	g := l.group
	state := stateDown
	var reason *admission.Unfit
	if errors.As(err, &reason) {
		state = stateRefused
	}
	g.mu.Lock()
	if l.cause == nil || l.cause.Error() != err.Error() || l.state != state {
		l.downLocked(state, err)
	}
	l.claimedRunID = ""
	l.failedDials++
	g.checkRecordsReadLocked()
	queued := l.queue.take()
	l.voteLog.Absent(g.now(), state == stateRefused, err)
	g.mu.Unlock()
	l.answerLost(nil, queued, err)
	l.dialSoon(err)
}

// activate puts the connection to work: first the pending releases, then what is to be
// repeated, then what waits.
func (c *connection) activate() {
	l := c.lane
	g := l.group
	c.timer = g.pool.options.Clock.AfterFunc(g.pool.options.MasterTimeout, c.onTimer)
	c.armed = true
	again := g.reconnectEntries()
	g.mu.Lock()
	var err error
	switch {
	case g.closed || l.left:
		err = errClosed
	case c.outdatedLocked(): // since it was admitted
		err = errOtherEpoch
	}
	if err != nil {
		g.mu.Unlock()
		c.timer.Stop()
		c.link.Close()
		l.dialFailed(err)
		return
	}
	g.counters.Admissions++
	l.conn, l.state, l.cause, l.since = c, stateUp, nil, g.now()
	l.failedDials, l.provedAt, l.carriedAt, l.failing = 0, 0, 0, nil
	l.queue.pushFirst(again)
	l.queue.pushFirst(l.pending.take(math.MaxInt))
	l.beat = true
	if wait := l.quarantineLocked(); wait > 0 { // before the lane wakes: the log has it in front of the first vote
		l.voteLog.Quarantined(g.now(), wait, c.incarnation.ID)
	}
	l.wakeLocked()
	g.mu.Unlock()
}

// keepRefused keeps the link of a refused dial until the next one, and closes the former one.
func keepRefused(l *lane, link Link) {
	l.group.mu.Lock()
	former := l.refused
	l.refused = link
	if l.group.closed || l.left {
		former, l.refused = link, nil // its lane was closed, and the former one with it
	}
	l.group.mu.Unlock()
	if former != nil {
		former.Close()
	}
}
