// A master's clock does not fit its estimate: did its clock step, or ours?
//
// A step forward makes the master forget locks early, and undoing the step does
// not bring them back. So one look is enough: the identity under which the
// master voted is retired for good, by compare-and-set, and the master starts a
// new life in which it must first grow old. If most masters deviate alike it was
// our own clock that jumped (a suspended machine): then nothing is retired and
// the estimates start anew.
package pool

import (
	"fmt"
	"time"
)

// suspicion holds what was seen until the other masters have been asked too.
type suspicion struct {
	at        time.Duration
	deviation int64 // µs, positive = the master's clock is ahead
	width     int64 // µs: how long that answer was under way, which deviation may be wrong by
	sent      time.Duration
	received  time.Duration
	time      int64
}

func (l *lane) suspectLocked(f *flush, now time.Duration, us, off int64) {
	if l.suspect == nil {
		l.suspect = &suspicion{at: now, deviation: off, width: micros(now - f.sent)}
		for _, other := range l.group.lanes {
			if other.conn != nil {
				other.beat = true
				other.wakeLocked()
			}
		}
	}
	l.suspect.sent, l.suspect.received, l.suspect.time = f.sent, now, us
}

// alike tells whether one jump of ours can be the reason for both deviations, of
// which estimates that are wrong by err µs are a part.
func (s *suspicion) alike(other *suspicion, err int64) bool {
	return abs(s.deviation-other.deviation) <= micros(step)+err+s.width+other.width
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
		alike, open := g.companyLocked(l)
		switch {
		case alike >= Quorum(len(g.lanes)):
			g.forgiveLocked(l.suspect)
		case alike+open < Quorum(len(g.lanes)), now-l.suspect.at > g.pool.options.MasterTimeout:
			l.retireLocked(l.conn)
			list = append(list, l.conn)
		}
	}
	return list
}

// companyLocked counts the masters that deviate like l, itself included, and
// those that have not shown their clock since.
func (g *Group) companyLocked(l *lane) (alike, open int) {
	for _, other := range g.lanes {
		switch {
		case other.conn == nil || other.conn.benched:
		case other.suspect != nil:
			if other.suspect.alike(l.suspect, other.est.err+l.est.err) {
				alike++
			}
		case other.proved < l.suspect.at:
			open++
		}
	}
	return alike, open
}

// forgiveLocked starts the estimates of all masters that deviate alike anew.
// Those that have not shown their clock since the jump would deviate as much
// when they do, with nobody left to be alike: their estimates jump, too.
func (g *Group) forgiveLocked(first *suspicion) {
	g.pool.options.Logger.Warn("this daemon's clock jumped; the masters' clocks are estimated anew",
		"by_ms", first.deviation/1000)
	for _, l := range g.lanes {
		switch s := l.suspect; {
		case s == nil && l.unseenLocked(first):
			l.est.offset += first.deviation
			l.est.err += micros(step) + first.width
		case s != nil && s.alike(first, l.est.err):
			l.est = estimate{}
			l.est.sample(s.sent, s.received, s.time)
			l.suspect = nil
		}
	}
	g.reclockLocked()
}

// unseenLocked tells whether the estimate of a master is from before our clock
// jumped. The jump lies in between for us as well: what was measured after it
// differs from what was measured before it by the jump itself.
func (l *lane) unseenLocked(first *suspicion) bool {
	jump := first.at - max(0, time.Duration(-first.deviation)*time.Microsecond)
	return l.est.known && l.proved <= first.at && l.est.taken <= jump
}

// retireLocked makes sure that no daemon counts this life of the master again.
func (l *lane) retireLocked(c *connection) {
	if l.retire == "" {
		l.group.counters.Latched++
	}
	l.retire = c.life.Identity
	l.est = estimate{}
	if s := l.suspect; s != nil {
		l.group.pool.options.Logger.Warn("a master's clock stepped",
			"master", l.master.Name, "by_ms", s.deviation/1000)
	}
}
