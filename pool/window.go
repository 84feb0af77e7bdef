// Window: the flushes of one connection that are under way at the same time.
//
// With one flush under way a request that finds it there waits for its answer first, and over a
// network every command costs nearly two round trips. So a lane sends further flushes behind it,
// on the same connection, each with a seal of its own. The next one is given to the link only when
// the socket has taken all of the one before, so the master executes them in that order. They are
// settled in that order, too, whichever task notices its answer first.
//
// Each seal proves what stands before it on the connection, so a void one says nothing good of the
// flushes behind it: memory that is gone, another process and a register that was rolled back end
// the connection, and with it all that is under way. What a flush may assume when it is sent does
// not depend on those that are under way: expiries come from the estimate of its own sending, the
// register is raised to a value above those before it, and the register that its seal must find
// includes what the flushes before it were acknowledged when it is settled.
//
// On loopback a flush comes back before another one is worth its price of some 50 µs of processor
// time, here and on the master. There nothing is different from one flush at a time.

package pool

import (
	"math"
	"slices"
	"time"

	"redlockd/pool/wire"
)

const (
	// minWindowTrip is the shortest round trip over which several flushes are under way.
	minWindowTrip = 400 * time.Microsecond
	// minSpacing and spacingShare are the least time between two flushes that are not full, the second
	// as a share of a round trip: what a request may wait for company.
	minSpacing   = 150 * time.Microsecond
	spacingShare = 16
	// tripPeriod is how long the shortest round trip of a connection is remembered, once or twice.
	tripPeriod = 2 * time.Second
)

// window is guarded like its connection. The zero value is empty.
type window struct {
	flushes  []*flush // sent and not settled, the oldest first
	spare    []*flush // for the next ones
	building *flush   // is being written, nothing of it has been sent
	settling bool     // a task settles the oldest flushes
	trips    shortestTrip
	spaced   Timer // wakes the lane for the next flush …
	waiting  bool  // … and is armed

	// again is to be sent again, in this order, once nothing is under way: a flush of the window must
	// not be executed before what it has overtaken.
	again []queueEntry
	// returned: something has come to be sent again since the flush that is being written was taken.
	returned bool
	// lost: the master no longer has the scripts. The next flush loads them, with nothing in front of it.
	lost       bool
	aloneUntil time.Duration // operations share no commands, see takeUnexecuted
}

// mayHaveAnother reports whether one more flush may be sent now. Where it may be soon, it arranges
// for the lane to wake up then.
func (c *connection) mayHaveAnotherLocked() bool {
	if len(c.flushes) == 0 {
		return true
	}
	if c.stalled || c.lost || len(c.again) > 0 || len(c.flushes) == maxWindow || c.trips.get() < minWindowTrip {
		return false
	}
	g := c.lane.group
	if len(c.lane.queue.entries) >= g.pool.options.MaxFlush {
		return true
	}
	wait := max(minSpacing, c.trips.get()/spacingShare) - (g.now() - c.flushes[len(c.flushes)-1].sent)
	if wait <= 0 {
		return true
	}
	if !c.waiting {
		c.waiting = true
		if c.spaced == nil {
			c.spaced = g.pool.options.Clock.AfterFunc(wait, c.onSpaced)
		} else {
			c.spaced.Reset(wait)
		}
	}
	return false
}

func (c *connection) onSpaced() {
	g := c.lane.group
	g.mu.Lock()
	defer g.mu.Unlock()
	if c.waiting = false; !c.closed {
		c.lane.wakeLocked()
	}
}

// sealOnItsWay reports whether a flush that is under way ends with a seal. It stands behind the
// answers of 0 that wait for one.
func (w *window) sealOnItsWay() bool {
	return slices.ContainsFunc(w.flushes, func(f *flush) bool { return f.sealed })
}

// entriesUnderWay counts the operations that are under way.
func (w *window) entriesUnderWay() (n int) {
	for _, f := range w.flushes {
		n += len(f.entries)
	}
	return n
}

// landLocked takes the oldest flush, whose answer is being settled, out of the window.
func (c *connection) landLocked() { c.flushes = slices.Delete(c.flushes, 0, 1) }

// sendAgainLocked puts what is to be sent again in front of the queue when nothing is under way.
func (c *connection) sendAgainLocked() {
	if len(c.flushes) == 0 && c.building == nil {
		c.lane.queue.pushFirst(c.again)
		c.again = nil
	}
}

// hasWorkLocked reports whether the lane may send a flush now, and has one to send. A nil connection
// has none.
func (c *connection) hasWorkLocked() bool {
	if c == nil {
		return false
	}
	l := c.lane
	return (len(l.queue.entries) > 0 || l.beat || len(c.unsealed) > 0 && !c.sealOnItsWay()) && c.mayHaveAnotherLocked()
}

// exchange sends a flush to a distant master and reads its replies. The turn is passed on as soon as
// the flush has left.
func (c *connection) exchange(f *flush, turn *bool) {
	link, windowed := c.link.(wire.WindowLink)
	if !windowed || len(f.commands) == 0 {
		f.exchangeOn(c.link)
		return
	}
	l := c.lane
	f.replies = link.ExchangeInWindow(f.commands, f.replies, func() {
		l.group.mu.Lock()
		defer l.group.mu.Unlock()
		*turn, l.running = false, false
		l.wakeLocked()
	})
}

// takeTurn gives the caller the lane's turn again, if there is something to send now and no task has it.
func (c *connection) takeTurn() bool {
	g := c.lane.group
	g.mu.Lock()
	defer g.mu.Unlock()
	return c.lane.takeTurnLocked()
}

// settle settles the flush, whose answer has come, unless an older one has no answer yet: the
// task that settles that one settles this one, too.
func (c *connection) settle(f *flush) {
	g := c.lane.group
	g.mu.Lock()
	defer g.mu.Unlock()
	f.answered = true
	if c.settling {
		return
	}
	c.settling = true
	for !c.closed && len(c.flushes) > 0 && c.flushes[0].answered {
		oldest := c.flushes[0]
		g.mu.Unlock()
		c.finishFlush(oldest)
		g.mu.Lock()
		c.spare = append(c.spare, oldest)
	}
	c.settling = false
}

// shortestTrip is the shortest round trip of the last one to two periods.
type shortestTrip struct {
	present, former time.Duration // 0 = none
	since           time.Duration // when the present period began
}

func (s *shortestTrip) note(now, took time.Duration) {
	if now-s.since > tripPeriod {
		s.former, s.present, s.since = s.present, 0, now
	}
	if took = max(took, 1); s.present == 0 || took < s.present {
		s.present = took
	}
}

func (s *shortestTrip) get() time.Duration {
	known := func(d time.Duration) time.Duration {
		if d == 0 {
			return math.MaxInt64
		}
		return d
	}
	if s.present == 0 && s.former == 0 {
		return 0
	}
	return min(known(s.present), known(s.former))
}
