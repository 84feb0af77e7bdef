// Circuit breaker: a master that does not answer receives no further commands. See lane.go
// for the operations of its flush.

package pool

// onTimer runs when a flush may have been on its way for too long. Flushes do
// not touch the timer: it fires, compares the times, and sleeps for the rest.
func (c *connection) onTimer() {
	l := c.lane
	l.group.mu.Lock()
	if c.closed || !c.inFlight && !c.stalled {
		c.armed = false
		l.group.mu.Unlock()
		return
	}
	limit := l.group.pool.options.MasterTimeout
	if c.stalled {
		limit *= 2
	}
	if age := l.group.now() - c.flush.sent; age < limit {
		c.timer.Reset(limit - age)
		l.group.mu.Unlock()
		return
	}
	if c.stalled {
		l.group.mu.Unlock()
		c.fail(errStalled)
		return
	}
	c.stallLocked()
}

// stallLocked opens the breaker; it releases the lock.
func (c *connection) stallLocked() {
	l := c.lane
	g := l.group
	g.counters.BreakerOpened++
	unanswered, unsent := c.unansweredLocked(), l.swapQueueLocked(nil)
	c.stalled = true
	c.timer.Reset(g.pool.options.MasterTimeout)
	l.downLocked(stateDown, errStalled)
	l.noteAbsentLocked(errStalled)
	g.mu.Unlock()
	l.answerLost(unanswered, unsent, errStalled)
}

// resumeLocked ends a pause: first the pending releases, then everything else.
func (c *connection) resumeLocked() {
	l := c.lane
	c.stalled = false
	l.state, l.cause, l.since = stateUp, nil, l.group.now()
	l.queuePendingFirstLocked()
	l.scheduleRepeatLocked()
	l.beat = true
}
