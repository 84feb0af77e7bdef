// What time is it on a master? An estimate, and how wrong it may be.
package pool

import "time"

// slewPPM bounds how fast an estimate follows a master: two small clock steps
// must not add up unnoticed to one that matters.
const slewPPM = 500

// estimate is the offset of a master's clock from ours, from the round trips
// of its TIME answers. All figures are microseconds; an offset turns a moment
// of Clock into a moment of the master.
type estimate struct {
	known  bool
	offset int64
	err    int64         // the truth is within ± err of offset, while the master's clock runs evenly
	taken  time.Duration // of the sample behind err
	slewed time.Duration // when offset was last moved: the slew is counted from here
}

func micros(d time.Duration) int64 { return d.Microseconds() }

// at is the master's time at our moment now.
func (e *estimate) at(now time.Duration) int64 { return micros(now) + e.offset }

// spread is the error of at(now): the sample's, and what the clocks may have
// drifted apart since.
func (e *estimate) spread(now time.Duration) int64 {
	return e.err + micros(now-e.taken)*slewPPM/1_000_000
}

// sample learns from a TIME answer read between sent and received. The most
// precise recent sample wins; the estimate moves towards it no faster than
// slewPPM, and what is left of the way is added to its error.
func (e *estimate) sample(sent, received time.Duration, master int64) {
	half := micros(received-sent)/2 + 1
	offset := master - (micros(sent) + half)
	if !e.known {
		*e = estimate{known: true, offset: offset, err: half, taken: received, slewed: received}
		return
	}
	if half > e.spread(received) {
		return
	}
	way := offset - e.offset
	// Counted in whole microseconds since the last move: with a flush every
	// 50 µs, one microsecond a sample would be 20 000 ppm.
	most := micros(received-e.slewed) * slewPPM / 1_000_000
	if most > 0 {
		e.slewed = received
	}
	moved := max(-most, min(most, way))
	e.offset += moved
	e.err = half + abs(way-moved)
	e.taken = received
}

// deviation is how far a TIME answer lies outside of what the estimate allows
// for an answer read between sent and received; 0 = inside. Positive: the
// master's clock is ahead. The round trip is counted from the moment the
// estimate was read, so a busy daemon never looks like a stepping clock.
func (e *estimate) deviation(sent, received time.Duration, master int64) int64 {
	wide := e.spread(received) + micros(step)
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
