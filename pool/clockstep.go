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
	"time"

	"redlockd/pool/clock"
)

// noteAnomalyLocked stores a measurement of a clock that does not fit, or did not. At the first
// one all clocks are measured.
func (g *Group) noteAnomalyLocked(l *lane, sent, now time.Duration, us int64) {
	first := l.anomaly == nil
	closer := l.note(sent, now, us)
	for _, other := range g.lanes {
		if first || closer && other == l {
			other.requestClockLocked()
		}
	}
}

// requestClockLocked makes the lane measure the master's clock.
func (l *lane) requestClockLocked() {
	if l.conn != nil {
		l.beat = true
		l.wakeLocked()
	}
}

// resolveAnomaliesLocked resolves every anomaly that can be resolved now. It returns the
// connections to masters whose clock stepped.
func (g *Group) resolveAnomaliesLocked(now time.Duration) (stepped connections) {
	answering := func(l *lane) bool { return l.conn != nil && !l.conn.stalled }
	for _, l := range g.lanes {
		if l.anomaly == nil || l.conn == nil {
			continue
		}
		switch l.resolve(&g.pool.options, now, g.clocksLocked(answering), Quorum(len(g.lanes))) {
		case causeDaemon:
			g.resyncLocked(l, now)
		case causeSmall:
			l.tolerateLocked()
		case causeStepped:
			l.conn.invalidateLocked()
			stepped = append(stepped, l.conn)
		}
	}
	return stepped
}

// clocksLocked are the clocks of some masters, or of all.
func (g *Group) clocksLocked(of func(*lane) bool) (all []*masterClock) {
	for _, l := range g.lanes {
		if of == nil || of(l) {
			all = append(all, &l.masterClock)
		}
	}
	return all
}

func (l *lane) tolerateLocked() {
	left, _, _ := l.tolerable(&l.group.pool.options)
	l.group.counters.StepsTolerated++
	l.group.pool.options.Logger.Info("small step of a master's clock tolerated",
		"master", l.master.Name, "by_ms", l.anomaly.deviation()/1000, "left_ms", left/1000)
	l.tolerate()
	l.group.updateClockLocked()
}

func (g *Group) resyncLocked(first *lane, now time.Duration) {
	g.pool.options.Logger.Warn("clock of this daemon jumped; the masters' clocks are estimated anew",
		"by_ms", first.anomaly.deviation()/1000)
	width, _ := first.comparison(&g.pool.options, now)
	resync(g.clocksLocked(nil), first.anomaly, width, g.pool.options.budget(), g.now())
	g.updateClockLocked()
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

// creptLocked reports whether a clock has crept ahead too far, and this daemon's own has not
// lost as much.
func (l *lane) creptLocked(now time.Duration, us int64) bool {
	g := l.group
	ahead, far := l.crept(&g.pool.options, now, us)
	connected := func(l *lane) bool { return l.conn != nil }
	return far && !l.level(&g.pool.options, now, ahead, g.clocksLocked(connected), g.clocksLocked(nil))
}
