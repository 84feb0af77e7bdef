// A master that does not answer is not asked. See lane.go for what that means
// for the operations of its flush.
package pool

// stalled runs when a flush may have been on its way for too long. The timer
// is not touched by every flush: it fires, looks, and sleeps for the rest.
func (c *connection) stalled() {
	l := c.lane
	l.group.mu.Lock()
	if c.closed || !c.inFlight && !c.benched {
		c.armed = false
		l.group.mu.Unlock()
		return
	}
	limit := l.group.pool.options.MasterTimeout
	if c.benched {
		limit *= 2
	}
	if age := l.group.now() - c.flush.sent; age < limit {
		c.watch.Reset(limit - age)
		l.group.mu.Unlock()
		return
	}
	if c.benched {
		l.group.mu.Unlock()
		l.fail(c, errStalled)
		return
	}
	l.benchLocked(c)
}

// benchLocked opens the breaker; it lets the lock go.
func (l *lane) benchLocked(c *connection) {
	g := l.group
	g.counters.BreakerOpened++
	victims, unasked := c.victimsLocked(), l.handOverLocked(nil)
	c.benched = true
	c.watch.Reset(g.pool.options.MasterTimeout)
	l.downLocked(stateDown, errStalled)
	l.absentLocked(errStalled)
	g.mu.Unlock()
	l.answerLost(victims, unasked, errStalled)
}

// backLocked ends a pause: first what is owed, then whatever comes.
func (l *lane) backLocked(c *connection) {
	c.benched = false
	l.state, l.cause, l.since = stateUp, nil, l.group.now()
	l.duesFirstLocked()
	l.repeatSoonLocked()
	l.beat = true
}
