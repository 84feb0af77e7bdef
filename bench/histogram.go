// How are latencies kept without disturbing what is measured? In buckets whose
// width is a 64th of their value, so that a note is one increment and an error
// is below 1 %.
package main

import (
	"math/bits"
	"time"
)

const (
	fine    = 6                   // bits of a value that are kept
	buckets = (43 - fine) << fine // up to 2^41 ns, more than half an hour
	half    = 0.5                 // a bucket is shown as its middle
)

// histogram counts durations; the zero value is empty.
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

// bucket of a value: small values have their own, larger ones share by their
// leading bits.
func bucket(v uint64) int {
	shift := max(bits.Len64(v)-fine-1, 0)
	return min(shift<<fine+int(v>>shift), buckets-1)
}

// middle is the value in the middle of a bucket.
func middle(i int) float64 {
	shift := max(i>>fine-1, 0)
	return (float64(i-shift<<fine) + half) * float64(uint64(1)<<shift)
}

// quantile returns microseconds, and 0 if nothing was counted.
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
