// connection is what a lane exchanges flushes on, and the breaker.
//
// A flush that is not answered within the master timeout opens the breaker: the operations of all
// that is under way and everything queued behind it are answered "unknown" at once, and nothing more
// is sent. A stopped master therefore costs one timeout, once. If all answers still come within
// StallTimeout, counted from the oldest flush, the lane continues on the same connection. Otherwise
// that ends, and the lane dials anew.
//
// The timeout is the master's and the network's. While bytes of the answer wait in the socket, this
// process is what did not run, and the deadline moves until it has read them. A timer that fires
// late gives one more timeout. Whether the votes were in time shows in their seal (verify.go).

package pool

import (
	"math"
	"slices"
	"time"

	"redlockd/pool/wire"
)

// connection is a link from its admission to its end.
type connection struct {
	lane        *lane
	link        Link
	incarnation *Incarnation
	connectedAt time.Duration // when it was admitted
	closed      bool
	timer       Timer
	armed       bool // watch is running

	window
	excused time.Duration // when the last flush was sent whose timer fired late
	stalled bool          // the operations were answered "unknown", the replies are read all the same

	daemons  daemonsDue
	unsealed []unsealedAnswer // answers of 0 that need a good seal after them
}

// emptyFlush returns a flush without operations.
func (c *connection) emptyFlush() *flush {
	f, g := &flush{}, c.lane.group
	if n := len(c.spare); n > 0 {
		f, c.spare = c.spare[n-1], c.spare[:n-1]
	}
	f.reset()
	f.loads, c.lost = c.lost, false
	f.aloneUntil = c.aloneUntil
	f.sealKey, f.embedded, f.scripts = g.sealKey, g.pool.embedded(), g.pool.scripts
	f.context.Lane, f.context.Incarnation, f.context.ConnectedAt = c.lane.index, c.incarnation, c.connectedAt
	return f
}

// planReadings plans what has no need of the group's lock.
func (c *connection) planReadings(f *flush) {
	g := c.lane.group
	if g.Events.Counts() {
		f.channel = g.Events.Channel
	}
	f.readDaemons = g.db == 0 && c.daemons.next() // database 0 stands for all
}

// noteReadings stores what planReadings has planned.
func (c *connection) noteReadings(f *flush) {
	l := c.lane
	if f.listenersAt >= 0 {
		l.group.Events.Count(l.index, f.replies[f.listenersAt], f.sent)
	}
	if f.daemonsAt >= 0 {
		if all, ok := c.daemons.read(f.replies[f.daemonsAt], l.group.pool.options.Group); ok {
			l.group.pool.daemons.Store(l.master.Name, all)
		}
	}
}

// startFlush sets the timer for the written flush. If the connection was ended,
// or stalled, while the flush was written, nothing of it is sent, and that is the answer.
func (c *connection) startFlush(f *flush) bool {
	l := c.lane
	g := l.group
	g.mu.Lock()
	c.building = nil
	if c.closed || c.stalled {
		cause := l.cause
		g.mu.Unlock()
		if cause == nil {
			cause = wire.ErrLinkClosed
		}
		l.answerLost(nil, f.entries, cause)
		return false
	}
	if c.returned { // what is to be sent again goes first
		l.queue.pushFirst(slices.Clone(f.entries))
		l.beat = l.beat || f.beat
		c.lost = c.lost || f.loads
		c.sendAgainLocked()
		g.mu.Unlock()
		return false
	}
	c.flushes = append(c.flushes, f)
	if !c.armed {
		c.armed = true
		c.timer.Reset(g.pool.options.MasterTimeout)
	}
	g.mu.Unlock()
	return true
}

// fail ends a connection: the flushes on their way and the queue are answered
// "unknown", and the next connection is dialled. The goroutine that marks the connection
// closed first delivers the answers; a late finishFlush finds it closed.
func (c *connection) fail(cause error) {
	l := c.lane
	g := l.group
	g.mu.Lock()
	if c.closed {
		g.mu.Unlock()
		return
	}
	c.closed = true
	c.timer.Stop()
	if c.spaced != nil {
		c.spaced.Stop()
	}
	if l.anomaly != nil {
		c.invalidateLocked() // whose clock it was can no longer be found out: assume the worst
	}
	unanswered := c.unansweredLocked()
	unsent := l.queue.take()
	l.conn, l.beat, l.anomaly = nil, false, nil
	l.claimedRunID = ""
	if g.now()-c.connectedAt < time.Second {
		l.failedDials = 1 // it did not last: do not dial in a tight loop
	}
	l.downLocked(stateDown, cause)
	g.mu.Unlock()

	c.link.Close()
	l.answerLost(unanswered, unsent, cause)
	// Only now: the answers above may leave pending releases that the next connection
	// must send before anything else.
	l.dialSoon(cause)
}

// connections are some that end for one reason.
type connections []*connection

func (cs connections) fail(cause error) {
	for _, c := range cs {
		c.fail(cause)
	}
}

// unansweredLocked are the entries whose commands may or may not be executed.
func (c *connection) unansweredLocked() []queueEntry {
	var out []queueEntry
	if !c.stalled { // they have been answered
		for _, f := range c.flushes {
			out = append(out, f.entries...)
		}
		out = append(out, c.again...)
		c.again = nil
	}
	for _, v := range c.unsealed {
		out = append(out, v.entry)
	}
	c.unsealed = nil
	return out
}

// onTimer runs when a flush may have been on its way for too long. Flushes do
// not touch the timer: it fires, compares the times, and sleeps for the rest.
func (c *connection) onTimer() {
	l := c.lane
	l.group.mu.Lock()
	if c.closed || len(c.flushes) == 0 {
		c.armed = false
		l.group.mu.Unlock()
		return
	}
	limit := l.group.pool.options.MasterTimeout
	if c.stalled {
		limit = l.group.pool.options.StallTimeout()
	}
	oldest := c.flushes[0]
	if age := l.group.now() - oldest.sent; age < limit {
		c.timer.Reset(limit - age)
		l.group.mu.Unlock()
		return
	}
	if u, ok := c.link.(wire.UnreadLink); ok && u.Unread() {
		c.timer.Reset(l.group.pool.options.MasterTimeout / 10)
		l.group.mu.Unlock()
		return
	}
	if age := l.group.now() - oldest.sent; !c.stalled && age > 2*limit && c.excused != oldest.sent {
		c.excused = oldest.sent // this process did not run, and perhaps has sent it only now
		c.timer.Reset(limit)
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
	unanswered, unsent := c.unansweredLocked(), l.queue.take()
	c.stalled = true
	c.timer.Reset(g.pool.options.MasterTimeout)
	l.downLocked(stateDown, errStalled)
	l.voteLog.Absent(g.now(), false, errStalled)
	g.mu.Unlock()
	l.answerLost(unanswered, unsent, errStalled)
}

// resumeLocked ends a pause: first the pending releases, then everything else.
func (c *connection) resumeLocked() {
	l := c.lane
	c.stalled = false
	c.timer.Reset(l.group.pool.options.MasterTimeout) // it was to fire at the end of the pause
	l.state, l.cause, l.since = stateUp, nil, l.group.now()
	l.queue.pushFirst(l.pending.take(math.MaxInt))
	l.scheduleRepeatLocked()
	l.beat = true
}
