// Histogram of a master's round trips, in buckets of a quarter of a doubling, so that
// adding one is an increment of an array.

package pool

import (
	"fmt"
	"math/bits"
	"strings"
	"time"
)

const (
	firstOctave = 4  // 2⁴ µs: no round trip over a socket is shorter
	lastOctave  = 23 // 2²³ µs, 8.4 s: beyond the longest --master-timeout
	buckets     = 4 * (lastOctave - firstOctave + 1)
)

// Histogram counts round trips by their duration. The zero value is empty.
type Histogram struct {
	Counts [buckets]uint64
	Sum    time.Duration
}

func (h *Histogram) Note(d time.Duration) {
	h.Counts[bucket(d)]++
	h.Sum += d
}

// bucket is the index of the bucket of d: its octave, and the two bits behind
// its highest one. Durations beyond either end go to the bucket at that end.
func bucket(d time.Duration) int {
	us := uint64(max(d, 0) / time.Microsecond)
	octave := bits.Len64(us) - 1
	switch {
	case octave < firstOctave:
		return 0
	case octave > lastOctave:
		return buckets - 1
	}
	return 4*(octave-firstOctave) + int(us>>(octave-2)&3)
}

// Bound returns the end of bucket i: every duration in it is shorter.
func Bound(i int) time.Duration {
	octave := firstOctave + i/4
	return time.Duration(4+i%4+1) << (octave - 2) * time.Microsecond
}

// String lists how many round trips each bucket has that has any, by its end in µs: "20:3 25:1".
func (h *Histogram) String() string {
	var parts []string
	for i, n := range h.Counts {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d:%d", Bound(i).Microseconds(), n))
		}
	}
	return strings.Join(parts, " ")
}

// Count is the number of round trips.
func (h *Histogram) Count() uint64 {
	var n uint64
	for _, c := range h.Counts {
		n += c
	}
	return n
}

// Quantile is the end of the bucket that holds the given part of all round
// trips, 0 before the first: at most a quarter more than the exact value.
func (h *Histogram) Quantile(part float64) time.Duration {
	n := h.Count()
	if n == 0 {
		return 0
	}
	rank, seen := uint64(part*float64(n-1))+1, uint64(0)
	for i, c := range h.Counts {
		if seen += c; seen >= rank {
			return Bound(i)
		}
	}
	return Bound(buckets - 1)
}
