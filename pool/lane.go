// lane is one master's queue and its one connection.
//
// A lane is drained by one task of the pool at a time: take a flush, exchange it, verify it, again,
// until nothing is queued. With distant masters the task passes its turn on when its flush has left
// (window.go). A master's order is kept because operations are queued under the group's lock, leave in
// that order on one connection, and a connection is never replaced while one of its flushes could still
// be executed (dial.go ends the predecessor first).

package pool

import (
	"runtime"
	"slices"
	"time"

	"redlockd/pool/masterlog"
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
	queue     queue
	running   bool // a task has the turn: it takes and sends the next flush
	repeating bool // a task repeats operations, see reconnect.go
	beat      bool // the next flush also verifies which process the master is
	beats     uint64

	masterClock
	incarnation *Incarnation
	invalidated string        // identity that the next admission must replace
	older       bool          // … because its memory is older than what the master has answered
	failing     error         // the reason why the last flush was void although the master answered
	carriedAt   time.Duration // when the last seal was sent that found the identity, good or not

	peerRecords

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
	failedDials  int    // in a row
	redial       Timer

	pending pendingReleases

	rtt   Histogram // of flushes that were settled
	votes votes

	voteLog  masterlog.VoteLog  // what is logged about its votes
	errorLog masterlog.ErrorLog // the errors of it that the log has
}

// queueLocked queues an operation, or returns why this master does not receive it.
func (l *lane) queueLocked(e queueEntry) error {
	switch {
	case l.group.closed:
		return errClosed
	case len(l.queue.entries) >= l.group.pool.options.MaxQueue:
		return errQueueFull
	case e.props.startsNew() && l.drained() != 0:
		return errDrained
	case l.state == stateUp, l.state == stateDialing && l.group.clocked:
		l.queue.push(e)
		return nil
	}
	if l.cause == nil {
		return errNoClocks
	}
	return l.cause
}

// drained is since when the lane's master is being drained, 0 = it is not.
func (l *lane) drained() time.Duration {
	return time.Duration(l.group.pool.drained[l.index].Load())
}

// wakeLocked starts a task unless one runs or there is nothing to do.
func (l *lane) wakeLocked() {
	if !l.takeTurnLocked() {
		return
	}
	if err := l.group.pool.tasks.Submit(l.run); err != nil {
		l.running = false // only while closing: close answers what is queued
	}
}

// takeTurnLocked gives the caller the turn, if there is something to send now and no task has it.
func (l *lane) takeTurnLocked() bool {
	if l.running || !l.conn.hasWorkLocked() {
		return false
	}
	l.running = true
	return true
}

// run drains the queue; it is the only caller of Exchange.
func (l *lane) run() {
	turn := true
	defer l.recoverPanic(&turn)
	var settled *flush // its memory is for the next one
	for {
		// One yield lets every goroutine that is about to queue something do so
		// first: with 64 callers flushes hold several times as many operations.
		runtime.Gosched()
		c, f := l.nextFlush(settled)
		if c == nil {
			return
		}
		if f.readSettings {
			c.planReadings(f)
		}
		f.write()
		if settled = nil; !c.startFlush(f) {
			continue
		}
		if !f.distant {
			f.exchangeOn(c.link)
			c.finishFlush(f)
			settled = f
			continue
		}
		c.exchange(f, &turn)
		c.settle(f)
		if turn = turn || c.takeTurn(); !turn {
			return
		}
	}
}

// recoverPanic turns a panic in an operation's callback into a lost connection:
// every operation of the lane still gets its answer. turn: the task has it.
func (l *lane) recoverPanic(turn *bool) {
	v := recover()
	if v == nil {
		return
	}
	l.group.mu.Lock()
	l.group.counters.Panics++
	c := l.conn
	if *turn {
		l.running = false
		if c != nil && c.building != nil {
			c.flushes, c.building = append(c.flushes, c.building), nil
		}
	}
	l.group.mu.Unlock()
	if c != nil {
		c.fail(errPanic)
	}
	panic(v) // to the pool's panic handler, which logs it
}

// nextFlush moves what fits from the queue into the connection's next flush. It
// returns nil, and no task has the turn, when nothing is to be sent now.
func (l *lane) nextFlush(settled *flush) (*connection, *flush) {
	g := l.group
	g.mu.Lock()
	defer g.mu.Unlock()
	c := l.conn
	if c != nil && settled != nil {
		c.spare = append(c.spare, settled)
	}
	if !c.hasWorkLocked() {
		l.running = false
		return nil, nil
	}
	f := c.emptyFlush()
	f.distant = c.settling || c.trips.get() >= minWindowTrip
	n := f.fill(l.queue.entries, g.pool.options.MaxFlush)
	left := f.leftBehind(l.queue.entries[n:])
	l.queue.drop(n)
	// For a master that could not raise its register, the heartbeat tries again to raise it:
	// reading it would not show whether that works by now.
	f.sealed = f.sealed || len(c.unsealed) > 0 && !c.sealOnItsWay() || l.beat && l.failing != nil
	f.beat, l.beat = l.beat, false
	if f.beat {
		l.beats++
	}
	f.readSettings = f.beat && l.beats%settingsEvery == 0
	f.minRegister = l.minRegister() // before it is sent: a record that is read later may be of a later register
	if f.readSettings {
		away := func(other *lane) bool {
			return other != l && (other.conn == nil || other.conn.connectedAt >= l.recordsReadAt)
		}
		l.planRecords(&f.readings, g.recordsLocked(), slices.ContainsFunc(g.lanes, away))
	}
	f.sent = g.now()
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
	c.building, c.returned = f, false
	return c, f
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

// close ends the lane; its operations are answered with the cause.
func (l *lane) close(cause error) {
	l.group.mu.Lock()
	if l.redial != nil {
		l.redial.Stop()
	}
	c, queued := l.conn, []queueEntry(nil)
	if c == nil {
		queued = l.queue.take()
	}
	l.group.mu.Unlock()
	keepRefused(l, nil)
	if c != nil {
		c.fail(cause)
		return
	}
	l.answerLost(nil, queued, cause)
}
