// Estimate of a master's clock, with a bound of its error.

package pool

import "time"

// driftPPM is how fast two undisturbed clocks may drift apart.
const driftPPM = 500

// estimate is the offset of a master's clock from ours, from the round trips
// of its TIME answers. All figures are microseconds; an offset turns a moment
// of Clock into a moment of the master.
type estimate struct {
	known  bool
	offset int64
	err    int64         // the truth is within ± err of offset, while the master's clock runs evenly
	taken  time.Duration // when the sample was received
}

func micros(d time.Duration) int64 { return d.Microseconds() }

// at is the master's time at our moment now.
func (e *estimate) at(now time.Duration) int64 { return micros(now) + e.offset }

// spread is the error of at(now): the sample's, and how far the clocks may have
// drifted apart since.
func (e *estimate) spread(now time.Duration) int64 {
	return e.err + micros(now-e.taken)*driftPPM/1_000_000
}

// sample updates the estimate from a TIME answer read between sent and received. The most
// precise recent sample wins. Steps that are too small to deviate are followed at
// once: a lease must not be written with an estimate that is known to be behind.
// gain.go makes sure that they do not add up unnoticed to a step that matters.
func (e *estimate) sample(sent, received time.Duration, master int64) {
	half := micros(received-sent)/2 + 1
	if !e.known || half <= e.spread(received) {
		*e = estimate{known: true, offset: master - (micros(sent) + half), err: half, taken: received}
	}
}

// deviation is how far a TIME answer lies outside of what the estimate allows
// for an answer read between sent and received; 0 = inside. Positive: the
// master's clock is ahead. The round trip is counted from the moment the
// estimate was read, so a busy daemon never looks like a stepping clock.
func (e *estimate) deviation(sent, received time.Duration, master int64) int64 {
	wide := e.spread(received) + micros(minStep)
	if latest := e.at(received) + wide; master > latest {
		return master - e.at(received)
	}
	if earliest := e.at(sent) - wide; master < earliest {
		return master - e.at(sent)
	}
	return 0
}

func abs(n int64) int64 {
	if n < 0 {
		return -n
	}
	return n
}
