// Master clock: what this daemon measured of one master's clock, and what it concludes when the
// clock does not fit. Nothing here acts on a connection: see clockstep.go.

package pool

import (
	"fmt"
	"time"

	"redlockd/pool/clock"
)

// masterClock is guarded like the lane that it is a part of.
type masterClock struct {
	est      clock.Estimate
	gain     gain
	anomaly  *clockAnomaly
	provedAt time.Duration // when the last good seal was sent
}

// check checks the TIME that the master read after everything else of a flush; its estimate
// was expected when that was sent. The master timeout limits when the master executed the
// flush, not when this process read the answer: a process that did not run finds an answer
// that was in time. The wider the time of an answer is, the longer a step of the clock can
// hide in it, but never longer than until the answer was read. So a grant that counts such a
// vote comes that much later than the copy that ended early, and that copy's lease is over
// by then. anew: the estimate begins with this measurement.
func (m *masterClock) check(o *Options, sent, received time.Duration, expected, us int64) (anew bool, err error) {
	limit, took := o.MasterTimeout, received-sent
	switch {
	case m.anomaly != nil:
		return false, errSuspect
	case us > expected+clock.Micros(limit):
		// The expiry was chosen from what was expected: beyond it a copy could last shorter
		// than its lease, so the estimate's error does not widen this bound.
		return false, fmt.Errorf("%w: executed after %d ms, limit %d ms", errLate, (us-expected)/1000, limit.Milliseconds())
	case us < expected-clock.Micros(maxBehind)-m.est.Spread(received):
		return false, fmt.Errorf("%w by %d ms", errBehind, (expected-us)/1000)
	case !m.unobserved(o, sent):
		return false, nil
	case took > limit:
		return false, errUnobserved // so wide a measurement is no estimate; the next heartbeat measures the clock
	}
	m.est = clock.Estimate{}
	m.est.Sample(sent, received, us)
	m.gain.restart(received, us-clock.Micros(sent), o.budget())
	if us-expected > clock.Micros(o.reserve()) {
		return true, errUnobserved
	}
	return true, nil
}

// observe follows a clock that fits.
func (m *masterClock) observe(o *Options, sent, received time.Duration, us int64) {
	if received-sent <= o.MasterTimeout {
		m.est.Sample(sent, received, us)
	}
	m.gain.observe(sent, received, us)
}

// crept is by how much a clock has crept ahead, in steps too small to be an anomaly, and
// whether that is too far.
func (m *masterClock) crept(o *Options, now time.Duration, us int64) (ahead int64, far bool) {
	ahead = m.gain.of(now, us-clock.Micros(now))
	return ahead, ahead > max(0, o.budget())+clock.Micros(clock.MinStep)
}

// level raises the floors of all clocks if most have crept ahead like m: this daemon's own
// clock lost as much. Nothing is left of the budget then.
func (m *masterClock) level(o *Options, now time.Duration, ahead int64, connected, all []*masterClock) bool {
	alike := 0
	for _, other := range connected {
		if other == m || other.est.Known && other.gain.of(now, other.est.Offset) >= ahead-clock.Micros(clock.MinStep) {
			alike++
		}
	}
	if alike < Quorum(len(all)) {
		return false
	}
	for _, other := range all { // by the same amount, so that they stay alike
		other.gain.floor += ahead - max(0, o.budget())
	}
	return true
}

type anomalyCause uint8

const (
	causeOpen    anomalyCause = iota // other clocks, or a closer measurement, will show it
	causeDaemon                      // this daemon's own clock jumped: most masters deviate alike
	causeSmall                       // the master's clock stepped by so little that it is tolerated
	causeStepped                     // it stepped too far
)

// resolve returns what the anomaly shows now, by the clocks of the masters that answer, its own among them.
func (m *masterClock) resolve(o *Options, now time.Duration, answering []*masterClock, quorum int) anomalyCause {
	width, late := m.comparison(o, now)
	alike, open := m.agreeing(answering, width)
	_, tolerable, closer := m.tolerable(o)
	switch {
	case alike >= quorum:
		return causeDaemon
	case alike+open >= quorum && !late:
		return causeOpen
	case tolerable:
		return causeSmall
	case late, !closer:
		return causeStepped
	}
	return causeOpen
}

// comparison is how closely clocks must be measured to be compared: as a step is long, or, when
// no time is left, as an answer that counts measures them.
func (m *masterClock) comparison(o *Options, now time.Duration) (width int64, late bool) {
	if now-m.anomaly.at > o.MasterTimeout {
		return clock.Micros(o.MasterTimeout), true
	}
	return clock.Micros(clock.MinStep), false
}

// agreeing counts the clocks that deviate like m, itself included, and those that have not
// been measured since, or not closely.
func (m *masterClock) agreeing(answering []*masterClock, width int64) (alike, open int) {
	for _, other := range answering {
		switch s := other.anomaly; {
		case s != nil && !s.agrees(m.anomaly, other.est.Err+m.est.Err):
		case s != nil && s.width() <= width && m.anomaly.width() <= width:
			alike++
		case s != nil, other.provedAt < m.anomaly.at:
			open++
		}
	}
	return alike, open
}

// tolerable reports whether a step may be tolerated, and what would be left of the
// budget then. open: closer measurements may show that it may.
func (m *masterClock) tolerable(o *Options) (left int64, yes, open bool) {
	s := m.anomaly
	if s.contradictory || m.unobserved(o, s.at) {
		return 0, false, false
	}
	// A step back may end an unseen step forward; it is taken to be as long.
	peak := max(s.time-clock.Micros(s.sent), 2*m.est.Offset-(s.time-clock.Micros(s.received)))
	left = o.budget() - m.gain.of(s.received, peak) - 2*m.est.Err
	return left, left >= 0, left+2*clock.Micros(s.received-s.sent) >= 0 && s.width() > clock.Micros(clock.MinStep)
}

// unobserved reports whether the clock was not measured for too long before this moment.
func (m *masterClock) unobserved(o *Options, at time.Duration) bool {
	return at-m.gain.observedAt > o.maxUnobserved()
}

// note stores a measurement of a clock that does not fit, or did not, and reports whether a closer
// one is needed.
func (m *masterClock) note(sent, received time.Duration, us int64) (closer bool) {
	low, high := us-m.est.At(received), us-m.est.At(sent)
	s := m.anomaly
	if s == nil {
		m.anomaly = &clockAnomaly{at: received, low: low, high: high, sent: sent, received: received, time: us}
		return true
	}
	slack := clock.Micros(clock.MinStep) + m.est.Spread(received)
	s.contradictory = s.contradictory || low > s.high+slack || high < s.low-slack
	if high-low < s.width() {
		s.low, s.high = low, high
		s.sent, s.received, s.time = sent, received, us
	}
	return s.width() > clock.Micros(clock.MinStep)
}

// tolerate accepts a small step. The clock's votes count again: no copy has ended before its
// lease, and none will as long as the gain stays within the budget. See gain.go.
func (m *masterClock) tolerate() {
	s := m.anomaly
	m.est = clock.Estimate{}
	m.est.Sample(s.sent, s.received, s.time)
	m.gain.observe(s.sent, s.received, s.time)
	m.anomaly = nil
}

// resync restarts the estimates of all clocks that deviate like first, after a jump of this
// daemon's own clock. One that has not been measured since the jump, or not closely, would
// deviate as much once it is, with no other that agrees. So its estimate jumps, too.
func resync(all []*masterClock, first *clockAnomaly, width, budget int64, now time.Duration) {
	for _, m := range all {
		switch s := m.anomaly; {
		case s == nil && !m.staleBefore(first), s != nil && !s.agrees(first, m.est.Err):
			continue
		case s != nil && s.width() <= width:
			m.est = clock.Estimate{}
			m.est.Sample(s.sent, s.received, s.time)
			m.anomaly = nil
		default:
			m.est.Offset += first.deviation()
			m.est.Err += clock.Micros(clock.MinStep) + first.width()
			m.anomaly = nil
		}
		m.gain.restart(now, m.est.Offset+m.est.Spread(now), budget)
	}
}

// staleBefore reports whether the estimate is from before this daemon's clock jumped.
// Measurements before the jump and after it differ by the jump itself, for this daemon as well.
func (m *masterClock) staleBefore(first *clockAnomaly) bool {
	jump := first.at - max(0, time.Duration(-first.high)*time.Microsecond)
	return m.est.Known && m.provedAt <= first.at && m.est.Taken <= jump
}

// clockAnomaly is a clock that does not fit, and how far it is off. An answer that
// was long under way, as when this process stood still meanwhile, hardly shows how far
// it is off: closer measurements decide whose clock it was.
type clockAnomaly struct {
	at            time.Duration
	low, high     int64 // µs: the master's clock is ahead of the estimate by at least low and at most high
	contradictory bool  // two measurements contradict each other: this clock was set twice
	sent          time.Duration
	received      time.Duration
	time          int64
}

func (c *clockAnomaly) width() int64 { return c.high - c.low }

// deviation returns how far the clock is off, give or take half the width.
func (c *clockAnomaly) deviation() int64 { return c.low + c.width()/2 }

// agrees reports whether one jump of this daemon's clock can be the reason for both
// deviations. Estimates that are wrong by err µs account for a part of them.
func (c *clockAnomaly) agrees(other *clockAnomaly, err int64) bool {
	slack := clock.Micros(clock.MinStep) + err
	return !c.contradictory && !other.contradictory && c.low <= other.high+slack && other.low <= c.high+slack
}
