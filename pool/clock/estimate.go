// Estimate of a master's clock, with a bound of its error.

package clock

import (
	"slices"
	"time"
)

const (
	// driftPPM is how fast two undisturbed clocks may drift apart.
	driftPPM = 500
	// MinStep is the deviation of a master's clock that cannot be jitter.
	MinStep = 15 * time.Millisecond
)

// Estimate is the offset of a master's clock from ours, from the round trips
// of its TIME answers. All figures are microseconds; an offset turns a moment
// of Clock into a moment of the master.
type Estimate struct {
	Known  bool
	Offset int64
	Err    int64         // the truth is within ± Err of Offset, while the master's clock runs evenly
	Taken  time.Duration // when the sample was received
}

// Median is the lower median of the offsets, which it sorts; there is at least one.
func Median(offsets []int64) int64 {
	slices.Sort(offsets)
	return offsets[(len(offsets)-1)/2]
}

func Micros(d time.Duration) int64 { return d.Microseconds() }

// At is the master's time at our moment now.
func (e *Estimate) At(now time.Duration) int64 { return Micros(now) + e.Offset }

// Spread is the error of At(now): the sample's, and how far the clocks may have
// drifted apart since.
func (e *Estimate) Spread(now time.Duration) int64 {
	return e.Err + Micros(now-e.Taken)*driftPPM/1_000_000
}

// Sample updates the estimate from a TIME answer read between sent and received. The most
// precise recent sample wins. Steps that are too small to deviate are followed at
// once: a lease must not be written with an estimate that is known to be behind.
// Package pool (gain.go) makes sure that they do not add up unnoticed to a step that matters.
func (e *Estimate) Sample(sent, received time.Duration, master int64) {
	half := Micros(received-sent)/2 + 1
	if !e.Known || half <= e.Spread(received) {
		*e = Estimate{Known: true, Offset: master - (Micros(sent) + half), Err: half, Taken: received}
	}
}

// Deviation is how far a TIME answer lies outside of what the estimate allows
// for an answer read between sent and received; 0 = inside. Positive: the
// master's clock is ahead. The round trip is counted from the moment the
// estimate was read, so a busy daemon never looks like a stepping clock.
func (e *Estimate) Deviation(sent, received time.Duration, master int64) int64 {
	wide := e.Spread(received) + Micros(MinStep)
	if latest := e.At(received) + wide; master > latest {
		return master - e.At(received)
	}
	if earliest := e.At(sent) - wide; master < earliest {
		return master - e.At(sent)
	}
	return 0
}

func Abs(n int64) int64 {
	if n < 0 {
		return -n
	}
	return n
}
