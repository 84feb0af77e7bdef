// lane is one master's queue and its one connection.
//
// A lane is drained by at most one task of the pool at a time: take a flush,
// exchange it, verify it, again, until nothing is queued. A master's order is kept
// because operations are queued under the group's lock, leave in that
// order on one connection, and a connection is never replaced while one of its
// flushes could still be executed (dial.go ends the predecessor first).
//
// A flush that is not answered within the master timeout opens the breaker: its
// operations and everything queued behind it are answered "unknown" at once, and
// nothing more is sent. A stopped master therefore costs one timeout, once. If
// the answer still comes within StallTimeout, the lane goes on where it was, on the
// same connection. Otherwise the connection ends and is dialled anew.
//
// The timeout is the master's and the network's. While bytes of the answer wait in the
// socket, this process is what did not run, and the deadline moves until it has read
// them. A timer that fires late gives one more timeout. Whether the votes were in time
// shows in their seal (verify.go).

package pool

import (
	"runtime"
	"time"

	"redlockd/pool/masterlog"
	"redlockd/pool/wire"
)

type laneState uint8

const (
	stateDialing laneState = iota // the first dial is not over
	stateUp
	stateDown
	stateRefused // reachable, but must not vote: a replica, another fingerprint …
)

// lane is guarded by its group's lock, except index and master, and what its task
// alone uses.
type lane struct {
	group  *Group
	index  int
	master Master

	state laneState
	cause error // why it is down or refused
	since time.Duration

	conn      *connection // nil unless up
	queue     []queueEntry
	buffer    []queueEntry // the memory that the queue is a part of, from its front
	running   bool         // a task drains the queue
	repeating bool         // a task repeats operations, see reconnect.go
	beat      bool         // the next flush also verifies which process the master is
	beats     uint64

	masterClock
	incarnation *Incarnation
	acked       int64         // highest register read or raised under a good seal, in whatever incarnation
	invalidated string        // identity that the next admission must replace
	failing     error         // the reason why the last flush was void although the master answered
	carriedAt   time.Duration // when the last seal was sent that found the identity, good or not

	peerRecords
	recordLanes []*lane // that the records are about which a flush reads

	base    int64   // of the last incarnation with this daemon's settings
	carries carried // configuration that stood on it at the last look

	refused      Link   // of the last dial, if the master refused this daemon
	left         bool   // the list does not have it any more
	claimedRunID string // run_id this lane is connected to, or about to be
	lastID       int64  // CLIENT ID of the last admitted connection …
	lastRun      string // … on the process with this run_id
	commands     int64  // that this process has counted, at the last reading
	version      string
	volatile     string // why the server is not durable, "" if it is
	attempts     int    // failed dials in a row
	redial       Timer

	pending []PendingRelease

	rtt   Histogram // of flushes that were settled
	votes votes

	voteLog  masterlog.VoteLog  // what is logged about its votes
	errorLog masterlog.ErrorLog // the errors of it that the log has
}

// connection is a link from its admission to its end.
type connection struct {
	lane        *lane
	link        Link
	incarnation *Incarnation
	connectedAt time.Duration // when it was admitted
	closed      bool
	timer       Timer
	armed       bool // watch is running

	building bool          // the flush is being written, nothing has been sent
	inFlight bool          // the flush has been sent and not been settled
	excused  time.Duration // when the last flush was sent whose timer fired late
	stalled  bool          // its operations were answered "unknown", its replies are read all the same
	flush    flush

	daemons  daemonsDue
	unsealed []unsealedAnswer // answers of 0 that need a good seal after them

	aloneUntil time.Duration // operations share no commands, see takeDenied
}

// unsealedAnswer is an answer that waits for the seal of a later flush.
type unsealedAnswer struct {
	entry queueEntry
	reply Reply
}

// wakeLocked starts a task unless one runs or there is nothing to do.
func (l *lane) wakeLocked() {
	if l.running || l.conn == nil || !l.hasWorkLocked() {
		return
	}
	l.running = true
	if err := l.group.pool.tasks.Submit(l.run); err != nil {
		l.running = false // only while closing: close answers what is queued
	}
}

func (l *lane) hasWorkLocked() bool {
	return len(l.queue) > 0 || l.beat || l.conn != nil && len(l.conn.unsealed) > 0
}

// run drains the queue; it is the only caller of Exchange.
func (l *lane) run() {
	defer l.recoverPanic()
	for {
		// One yield lets every goroutine that is about to queue something do so
		// first: with 64 callers flushes hold several times as many operations.
		runtime.Gosched()
		c := l.nextFlush()
		if c == nil {
			return
		}
		f := &c.flush
		if f.readSettings {
			c.planReadings(f)
		}
		f.write()
		if !c.startFlush() {
			continue
		}
		if len(f.commands) > 0 {
			f.replies = c.link.Exchange(f.commands, f.replies)
		}
		c.finishFlush()
	}
}

// recoverPanic turns a panic in an operation's callback into a lost connection:
// every operation of the lane still gets its answer.
func (l *lane) recoverPanic() {
	v := recover()
	if v == nil {
		return
	}
	l.group.mu.Lock()
	l.group.counters.Panics++
	c := l.conn
	l.running = false
	if c != nil {
		c.inFlight = c.inFlight || c.building
		c.building = false
	}
	l.group.mu.Unlock()
	if c != nil {
		c.fail(errPanic)
	}
	panic(v) // to the pool's panic handler, which logs it
}

// nextFlush moves what fits from the queue into the connection's next flush. It
// returns nil, and the lane is idle, when there is nothing to send.
func (l *lane) nextFlush() *connection {
	g := l.group
	g.mu.Lock()
	defer g.mu.Unlock()
	c := l.conn
	if c == nil || !l.hasWorkLocked() {
		l.running = false
		return nil
	}
	f := c.emptyFlush()
	n := f.fill(l.queue, g.pool.options.MaxFlush)
	left := f.leftBehind(l.queue[n:])
	l.dequeueLocked(n)
	// For a master that could not raise its register, the heartbeat tries again to raise it:
	// reading it would not show whether that works by now.
	f.sealed = f.sealed || len(c.unsealed) > 0 || l.beat && l.failing != nil
	f.beat, l.beat = l.beat, false
	if f.beat {
		l.beats++
	}
	f.readSettings = f.beat && l.beats%settingsEvery == 0
	f.minRegister = l.minRegisterLocked() // before it is sent: a record that is read later may be of a later register
	if f.readSettings {
		l.planRecordsLocked(f)
	}
	f.sent = g.now()
	f.alone = f.sent < c.aloneUntil
	f.context.Now, f.context.Time = f.sent, l.est.At(f.sent)
	if f.raise = left - 1; left == 0 || f.bare {
		f.raise = g.tickLocked(f.sent) + f.ahead
	}
	f.raise = max(f.raise, f.least)
	if n > 0 {
		g.counters.Flushes++
	}
	g.counters.Commands += int64(n)
	if f.sealed || f.beat {
		g.counters.Seals++
	}
	c.building = true
	return c
}

// emptyFlush returns the connection's flush without operations.
func (c *connection) emptyFlush() *flush {
	f, g := &c.flush, c.lane.group
	f.reset()
	f.sealKey, f.embedded = g.sealKey, g.pool.embedded()
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

// startFlush sets the timer for the written flush. If the connection was ended
// while the flush was written, nothing of it was sent, and that is the answer.
func (c *connection) startFlush() bool {
	l := c.lane
	g := l.group
	g.mu.Lock()
	c.building = false
	if c.closed {
		cause := l.cause
		g.mu.Unlock()
		if cause == nil {
			cause = wire.ErrLinkClosed
		}
		l.answerLost(nil, c.flush.entries, cause)
		return false
	}
	c.inFlight = true
	if !c.armed {
		c.armed = true
		c.timer.Reset(g.pool.options.MasterTimeout)
	}
	g.mu.Unlock()
	return true
}

// answerLost answers operations whose outcome is unknown, or that were not sent.
func (l *lane) answerLost(sent, unsent []queueEntry, cause error) {
	lost := Answer{Lane: l.index, Reply: Reply{Kind: ReplyError, Err: cause}, Seal: Seal{Err: cause}}
	for i, entries := range [][]queueEntry{sent, unsent} {
		l.votes.addUncounted(entries)
		lost.Sent = i == 0
		for _, e := range entries {
			l.group.answer(e.op, lost)
		}
	}
}

// fail ends a connection: the flush on its way and the queue are answered
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
	if l.anomaly != nil {
		c.invalidateLocked() // whose clock it was can no longer be found out: assume the worst
	}
	unanswered := c.unansweredLocked()
	unsent := l.swapQueueLocked(nil)
	l.conn, l.beat, l.anomaly = nil, false, nil
	l.claimedRunID = ""
	if g.now()-c.connectedAt < time.Second {
		l.attempts = 1 // it did not last: do not dial in a tight loop
	}
	l.downLocked(stateDown, cause)
	g.mu.Unlock()

	c.link.Close()
	l.answerLost(unanswered, unsent, cause)
	// Only now: the answers above may leave pending releases that the next connection
	// must send before anything else.
	l.dialSoon(cause)
}

// unansweredLocked are the entries whose commands may or may not be executed.
func (c *connection) unansweredLocked() []queueEntry {
	var out []queueEntry
	if c.inFlight {
		out = append(out, c.flush.entries...)
	}
	for _, v := range c.unsealed {
		out = append(out, v.entry)
	}
	c.unsealed, c.inFlight = nil, false
	return out
}

// close ends the lane; its operations are answered with the cause.
func (l *lane) close(cause error) {
	l.group.mu.Lock()
	if l.redial != nil {
		l.redial.Stop()
	}
	c, queued := l.conn, []queueEntry(nil)
	if c == nil {
		queued = l.swapQueueLocked(nil)
	}
	l.group.mu.Unlock()
	keepRefused(l, nil)
	if c != nil {
		c.fail(cause)
		return
	}
	l.answerLost(nil, queued, cause)
}

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
		limit = l.group.pool.options.StallTimeout()
	}
	if age := l.group.now() - c.flush.sent; age < limit {
		c.timer.Reset(limit - age)
		l.group.mu.Unlock()
		return
	}
	if u, ok := c.link.(unreadLink); ok && u.Unread() {
		c.timer.Reset(l.group.pool.options.MasterTimeout / 10)
		l.group.mu.Unlock()
		return
	}
	if age := l.group.now() - c.flush.sent; !c.stalled && age > 2*limit && c.excused != c.flush.sent {
		c.excused = c.flush.sent // this process did not run, and perhaps has sent it only now
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

// unreadLink is a Link on a socket.
type unreadLink interface {
	// Unread reports whether the master has sent bytes that this process has not read.
	Unread() bool
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
	l.queuePendingFirstLocked()
	l.scheduleRepeatLocked()
	l.beat = true
}
