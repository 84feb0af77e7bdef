// Clock steps: a master's clock does not fit its estimate, because it stepped or because
// this daemon's own clock did.
//
// A step forward makes the master forget locks early, and undoing the step does
// not bring them back. A small step is tolerated, because copies outlast their leases
// by the master timeout: gain.go computes by how much. For a larger step, one measurement
// is enough: the identity under which the master voted is invalidated for good, by
// compare-and-set. The master starts a new incarnation and is quarantined until that is
// old enough. If most masters deviate alike, this daemon's own clock jumped (a suspended
// machine): then nothing is invalidated and the estimates start anew. In case the masters'
// clocks did jump, nothing is left of the budget.

package pool

import (
	"fmt"
	"time"

	"redlockd/pool/clock"
)

// noteAnomalyLocked stores a measurement of a clock that does not fit, or did not.
func (f *flush) noteAnomalyLocked(now time.Duration, us int64) {
	l := f.conn.lane
	low, high := us-l.est.At(now), us-l.est.At(f.sent)
	s := l.anomaly
	if s == nil {
		l.anomaly = &clockAnomaly{at: now, low: low, high: high, sent: f.sent, received: now, time: us}
		for _, other := range l.group.lanes {
			other.requestClockLocked()
		}
		return
	}
	slack := clock.Micros(clock.MinStep) + l.est.Spread(now)
	s.contradictory = s.contradictory || low > s.high+slack || high < s.low-slack
	if high-low < s.width() {
		s.low, s.high = low, high
		s.sent, s.received, s.time = f.sent, now, us
	}
	if s.width() > clock.Micros(clock.MinStep) {
		l.requestClockLocked()
	}
}

// requestClockLocked makes the lane measure the master's clock.
func (l *lane) requestClockLocked() {
	if l.conn != nil {
		l.beat = true
		l.wakeLocked()
	}
}

// invalidations are connections whose master's identity must be invalidated.
type invalidations []*connection

func (list invalidations) disconnect() {
	for _, c := range list {
		c.fail(fmt.Errorf("its clock stepped; its locks may be lost, so it starts a new incarnation"))
	}
}

// resolveAnomaliesLocked resolves every anomaly that can be resolved now.
func (g *Group) resolveAnomaliesLocked(now time.Duration) invalidations {
	var list invalidations
	for _, l := range g.lanes {
		if l.anomaly == nil || l.conn == nil {
			continue
		}
		// Clocks are compared when they are measured as closely as a step is long, or, when
		// no time is left, as closely as an answer that counts measures them.
		late := now-l.anomaly.at > g.pool.options.MasterTimeout
		width := clock.Micros(clock.MinStep)
		if late {
			width = clock.Micros(g.pool.options.MasterTimeout)
		}
		alike, open := g.agreeingLocked(l, width)
		left, tolerable, closer := l.tolerable()
		switch {
		case alike >= Quorum(len(g.lanes)):
			g.resyncLocked(l.anomaly, width)
		case alike+open >= Quorum(len(g.lanes)) && !late:
		case tolerable:
			l.tolerateLocked(left)
		case late, !closer:
			l.conn.invalidateLocked()
			list = append(list, l.conn)
		}
	}
	return list
}

// tolerateLocked accepts a small step of a master's clock. Its votes count again:
// no copy has ended before its lease, and none will as long as the gain stays within
// the budget. See gain.go.
func (l *lane) tolerateLocked(left int64) {
	s := l.anomaly
	l.group.counters.StepsTolerated++
	l.group.pool.options.Logger.Info("small step of a master's clock tolerated",
		"master", l.master.Name, "by_ms", s.deviation()/1000, "left_ms", left/1000)
	l.est = clock.Estimate{}
	l.est.Sample(s.sent, s.received, s.time)
	l.gain.observe(s.sent, s.received, s.time)
	l.anomaly = nil
	l.group.updateClockLocked()
}

// agreeingLocked counts the masters that deviate like l, itself included, and
// those whose clock has not been measured since, or not closely.
func (g *Group) agreeingLocked(l *lane, width int64) (alike, open int) {
	for _, other := range g.lanes {
		switch s := other.anomaly; {
		case other.conn == nil || other.conn.stalled:
		case s != nil && !s.agrees(l.anomaly, other.est.Err+l.est.Err):
		case s != nil && s.width() <= width && l.anomaly.width() <= width:
			alike++
		case s != nil, other.provedAt < l.anomaly.at:
			open++
		}
	}
	return alike, open
}

// resyncLocked restarts the estimates of all masters that deviate alike. A master whose
// clock has not been measured since the jump, or not closely, would deviate as much once it
// is, with no other master left that agrees. So its estimate jumps, too.
func (g *Group) resyncLocked(first *clockAnomaly, width int64) {
	g.pool.options.Logger.Warn("clock of this daemon jumped; the masters' clocks are estimated anew",
		"by_ms", first.deviation()/1000)
	for _, l := range g.lanes {
		switch s := l.anomaly; {
		case s == nil && !l.estimateStaleLocked(first), s != nil && !s.agrees(first, l.est.Err):
			continue
		case s != nil && s.width() <= width:
			l.est = clock.Estimate{}
			l.est.Sample(s.sent, s.received, s.time)
			l.anomaly = nil
		default:
			l.est.Offset += first.deviation()
			l.est.Err += clock.Micros(clock.MinStep) + first.width()
			l.anomaly = nil
		}
		now := g.now()
		l.gain.restart(now, l.est.Offset+l.est.Spread(now), l.budget())
	}
	g.updateClockLocked()
}

// estimateStaleLocked reports whether the estimate of a master is from before this
// daemon's clock jumped. Measurements before the jump and after it differ by the jump
// itself, for this daemon as well.
func (l *lane) estimateStaleLocked(first *clockAnomaly) bool {
	jump := first.at - max(0, time.Duration(-first.high)*time.Microsecond)
	return l.est.Known && l.provedAt <= first.at && l.est.Taken <= jump
}

// invalidateLocked makes sure that no daemon counts votes of this incarnation again.
func (c *connection) invalidateLocked() {
	l := c.lane
	first := l.invalidated == "" // the end of the connection invalidates it a second time
	if first {
		l.group.counters.Invalidated++
	}
	l.invalidated = c.incarnation.Identity
	l.est = clock.Estimate{}
	if s := l.anomaly; s != nil && first {
		l.group.pool.options.Logger.Warn("clock of a master stepped", "master", l.master.Name, "by_ms", s.deviation()/1000)
	}
}

// budget is how much gain is tolerated.
func (l *lane) budget() int64 {
	o := &l.group.pool.options
	return clock.Micros(o.MasterTimeout - o.reserve() - clock.MinStep)
}

// unobserved reports whether the clock was not measured for too long before this moment.
func (l *lane) unobserved(now time.Duration) bool {
	return now-l.gain.observedAt > l.group.pool.options.maxUnobserved()
}

// creptLocked reports whether a clock has crept ahead too far, in steps too small to
// be an anomaly. If most clocks did, this daemon's own clock lost as much: then all
// floors rise, until nothing is left of the budget.
func (l *lane) creptLocked(now time.Duration, master int64) bool {
	most := l.budget() + clock.Micros(clock.MinStep)
	mine := l.gain.of(now, master-clock.Micros(now))
	if mine <= max(most, clock.Micros(clock.MinStep)) {
		return false
	}
	alike := 0
	for _, other := range l.group.lanes {
		if other == l || other.conn != nil && other.est.Known && other.gain.of(now, other.est.Offset) >= mine-clock.Micros(clock.MinStep) {
			alike++
		}
	}
	if alike < Quorum(len(l.group.lanes)) {
		return true
	}
	for _, other := range l.group.lanes { // by the same amount, so that they stay alike
		other.gain.floor += mine - max(0, l.budget())
	}
	return false
}

// tolerable reports whether a step may be tolerated, and what would be left of the
// budget then. open: closer measurements may show that it may.
func (l *lane) tolerable() (left int64, yes, open bool) {
	s := l.anomaly
	if s.contradictory || l.unobserved(s.at) {
		return 0, false, false
	}
	// A step back may end an unseen step forward; it is taken to be as long.
	peak := max(s.time-clock.Micros(s.sent), 2*l.est.Offset-(s.time-clock.Micros(s.received)))
	left = l.budget() - l.gain.of(s.received, peak) - 2*l.est.Err
	return left, left >= 0, left+2*clock.Micros(s.received-s.sent) >= 0 && s.width() > clock.Micros(clock.MinStep)
}
