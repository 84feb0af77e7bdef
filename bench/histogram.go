// The histogram of latencies. The width of a bucket is a 64th of its value. So recording
// is one increment that does not disturb the measurement, and the error is below 1 %.

package main

import (
	"math/bits"
	"time"
)

const (
	precisionBits = 6                                     // leading bits of a value that select its bucket
	buckets       = (43 - precisionBits) << precisionBits // up to 2^41 ns, more than half an hour
	half          = 0.5                                   // a bucket stands for its middle
)

// histogram counts durations. The zero value is empty.
type histogram struct {
	counts [buckets]uint32
	total  uint64
}

func (h *histogram) add(d time.Duration) {
	h.counts[bucket(uint64(max(d, 0)))]++
	h.total++
}

func (h *histogram) merge(other *histogram) {
	for i, n := range other.counts {
		h.counts[i] += n
	}
	h.total += other.total
}

// bucket returns the bucket of a value. Small values have their own; larger values with the
// same leading bits share one.
func bucket(v uint64) int {
	shift := max(bits.Len64(v)-precisionBits-1, 0)
	return min(shift<<precisionBits+int(v>>shift), buckets-1)
}

// middle is the value in the middle of a bucket.
func middle(i int) float64 {
	shift := max(i>>precisionBits-1, 0)
	return (float64(i-shift<<precisionBits) + half) * float64(uint64(1)<<shift)
}

// quantile returns microseconds, 0 for an empty histogram.
func (h *histogram) quantile(q float64) float64 {
	if h.total == 0 {
		return 0
	}
	left := uint64(q * float64(h.total-1))
	for i, n := range h.counts {
		if left < uint64(n) {
			return middle(i) / 1000
		}
		left -= uint64(n)
	}
	return middle(buckets-1) / 1000
}
