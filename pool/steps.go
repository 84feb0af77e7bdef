// A master's clock does not fit its estimate: did its clock step, or ours?
//
// A step forward makes the master forget locks early, and undoing the step does
// not bring them back. A small one is forgiven, because copies outlast their leases
// by the master timeout: gain.go says how much. For a larger one, one look is
// enough: the identity under which the
// master voted is retired for good, by compare-and-set, and the master starts a
// new life in which it must first grow old. If most masters deviate alike it was
// our own clock that jumped (a suspended machine): then nothing is retired and
// the estimates start anew. In case it was their clocks, nothing is left of the budget.
package pool

import (
	"fmt"
	"time"
)

// suspicion is a clock that does not fit, and how far it is off. An answer that
// was long under way, as when this process stood still meanwhile, hardly tells
// how far: whose clock it was is decided by closer looks.
type suspicion struct {
	at        time.Duration
	low, high int64 // µs: the master's clock is ahead of the estimate by no less and no more
	moves     bool  // two looks contradict each other: this clock was set twice
	sent      time.Duration
	received  time.Duration
	time      int64
}

// suspectLocked notes a look at a clock that does not fit, or did not.
func (l *lane) suspectLocked(f *flush, now time.Duration, us int64) {
	low, high := us-l.est.at(now), us-l.est.at(f.sent)
	s := l.suspect
	if s == nil {
		l.suspect = &suspicion{at: now, low: low, high: high, sent: f.sent, received: now, time: us}
		for _, other := range l.group.lanes {
			other.lookLocked()
		}
		return
	}
	slack := micros(step) + l.est.spread(now)
	s.moves = s.moves || low > s.high+slack || high < s.low-slack
	if high-low < s.width() {
		s.low, s.high = low, high
		s.sent, s.received, s.time = f.sent, now, us
	}
	if s.width() > micros(step) {
		l.lookLocked()
	}
}

// lookLocked asks the master for its clock.
func (l *lane) lookLocked() {
	if l.conn != nil {
		l.beat = true
		l.wakeLocked()
	}
}

func (s *suspicion) width() int64 { return s.high - s.low }

// by is how far the clock is off, give or take half the width.
func (s *suspicion) by() int64 { return s.low + s.width()/2 }

// alike tells whether one jump of ours can be the reason for both deviations, of
// which estimates that are wrong by err µs are a part.
func (s *suspicion) alike(other *suspicion, err int64) bool {
	slack := micros(step) + err
	return !s.moves && !other.moves && s.low <= other.high+slack && other.low <= s.high+slack
}

// latching are connections whose master's identity must be retired.
type latching []*connection

func (list latching) latch() {
	for _, c := range list {
		l := c.lane
		l.fail(c, fmt.Errorf("its clock stepped; its locks may be lost, so it starts a new life"))
	}
}

// judgeStepsLocked decides every suspicion that can be decided now.
func (g *Group) judgeStepsLocked(now time.Duration) latching {
	var list latching
	for _, l := range g.lanes {
		if l.suspect == nil || l.conn == nil {
			continue
		}
		// Clocks are compared when they are known as closely as a step is long, or, when
		// there is no time left, as closely as an answer that counts tells them.
		late := now-l.suspect.at > g.pool.options.MasterTimeout
		width := micros(step)
		if late {
			width = micros(g.pool.options.MasterTimeout)
		}
		alike, open := g.companyLocked(l, width)
		left, forgiven, closer := l.pardonable()
		switch {
		case alike >= Quorum(len(g.lanes)):
			g.forgiveLocked(l.suspect, width)
		case alike+open >= Quorum(len(g.lanes)) && !late:
		case forgiven:
			l.pardonLocked(left)
		case late, !closer:
			l.retireLocked(l.conn)
			list = append(list, l.conn)
		}
	}
	return list
}

// pardonLocked forgives a master a small step of its clock. Its votes count again:
// no copy has ended before its lease, and none will as long as the gain stays within
// the budget. See gain.go.
func (l *lane) pardonLocked(left int64) {
	s := l.suspect
	l.group.counters.Forgiven++
	l.group.pool.options.Logger.Info("small step of a master's clock forgiven",
		"master", l.master.Name, "by_ms", s.by()/1000, "left_ms", left/1000)
	l.est = estimate{}
	l.est.sample(s.sent, s.received, s.time)
	l.gain.look(s.sent, s.received, s.time)
	l.suspect = nil
	l.group.reclockLocked()
}

// companyLocked counts the masters that deviate like l, itself included, and
// those that have not shown their clock since, or not closely.
func (g *Group) companyLocked(l *lane, width int64) (alike, open int) {
	for _, other := range g.lanes {
		switch s := other.suspect; {
		case other.conn == nil || other.conn.benched:
		case s != nil && !s.alike(l.suspect, other.est.err+l.est.err):
		case s != nil && s.width() <= width && l.suspect.width() <= width:
			alike++
		case s != nil, other.proved < l.suspect.at:
			open++
		}
	}
	return alike, open
}

// forgiveLocked starts the estimates of all masters that deviate alike anew.
// Those that have not shown their clock since the jump, or not closely, would
// deviate as much when they do, with nobody left to be alike: their estimates
// jump, too.
func (g *Group) forgiveLocked(first *suspicion, width int64) {
	g.pool.options.Logger.Warn("this daemon's clock jumped; the masters' clocks are estimated anew",
		"by_ms", first.by()/1000)
	for _, l := range g.lanes {
		switch s := l.suspect; {
		case s == nil && !l.unseenLocked(first), s != nil && !s.alike(first, l.est.err):
			continue
		case s != nil && s.width() <= width:
			l.est = estimate{}
			l.est.sample(s.sent, s.received, s.time)
			l.suspect = nil
		default:
			l.est.offset += first.by()
			l.est.err += micros(step) + first.width()
			l.suspect = nil
		}
		now := g.now()
		l.gain.restart(now, l.est.offset+l.est.spread(now), l.budget())
	}
	g.reclockLocked()
}

// unseenLocked tells whether the estimate of a master is from before our clock
// jumped. The jump lies in between for us as well: what was measured after it
// differs from what was measured before it by the jump itself.
func (l *lane) unseenLocked(first *suspicion) bool {
	jump := first.at - max(0, time.Duration(-first.high)*time.Microsecond)
	return l.est.known && l.proved <= first.at && l.est.taken <= jump
}

// retireLocked makes sure that no daemon counts this life of the master again.
func (l *lane) retireLocked(c *connection) {
	first := l.retire == "" // the end of the connection retires what was retired already
	if first {
		l.group.counters.Latched++
	}
	l.retire = c.life.Identity
	l.est = estimate{}
	if s := l.suspect; s != nil && first {
		l.group.pool.options.Logger.Warn("a master's clock stepped",
			"master", l.master.Name, "by_ms", s.by()/1000)
	}
}
