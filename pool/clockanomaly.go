// Clock anomaly: a master's clock that does not fit, and what is known of how far it is off.

package pool

import (
	"time"

	"redlockd/pool/clock"
)

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

func (s *clockAnomaly) width() int64 { return s.high - s.low }

// deviation is how far the clock is off, give or take half the width.
func (s *clockAnomaly) deviation() int64 { return s.low + s.width()/2 }

// agrees reports whether one jump of this daemon's clock can be the reason for both
// deviations. Estimates that are wrong by err µs account for a part of them.
func (s *clockAnomaly) agrees(other *clockAnomaly, err int64) bool {
	slack := clock.Micros(clock.MinStep) + err
	return !s.contradictory && !other.contradictory && s.low <= other.high+slack && other.low <= s.high+slack
}
