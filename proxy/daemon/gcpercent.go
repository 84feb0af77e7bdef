package daemon

// The garbage collector's percentage, adapted to the size of the heap.
//
// A daemon keeps a few megabytes live and, when busy, allocates a hundred in a
// second. Go collects when garbage equals the live heap, which is ten times a
// second then and slows the slowest requests most. So the heap may grow to
// heapFloor first.
//
// Clients that send much and read nothing keep some 36 MB live. By Go's own rule
// the heap doubles that, and the process needs 116 MB. So the heap grows to
// smallHeap only. From there on the percentage rises with the live heap, and from
// largeHeap on Go's own rule holds: with that much live a collection takes so long
// that it must be rare.
//
// Measured, medians of three interleaved runs, 64 callers of one client: pairs
// from 38 900 to 41 800 a second, acquire p99 from 2.11 to 1.68 ms; with a floor
// of 32 MB 7 kB more for each of a thousand hostile connections, and no faster.

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	heapFloor      = 24 << 20
	smallHeap      = 2 * heapFloor
	largeHeap      = 100 << 20
	minPercent     = 25  // of the live heap
	defaultPercent = 100 // by Go's own rule
	maxPercent     = 400
)

// adaptGCPercent sets Go's percentage after every collection, unless the operator
// set GOGC.
func adaptGCPercent() {
	if os.Getenv("GOGC") != "" {
		return
	}
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	last := defaultPercent
	adjust := func() {
		metrics.Read(sample)
		if next := percentFor(sample[0].Value.Uint64()); next != last {
			debug.SetGCPercent(next)
			last = next
		}
	}
	// Nothing references the sentinel, so every collection runs its finalizer.
	type sentinel struct{ _ [64]byte }
	var again func(*sentinel)
	again = func(s *sentinel) {
		adjust()
		runtime.SetFinalizer(s, again)
	}
	s := &sentinel{}
	runtime.SetFinalizer(s, again)
}

// percentFor lets a heap of live bytes grow to the floor, or by Go's rule as long as it
// remains small, in steps of 25: each change of the setting stops the world for a moment.
func percentFor(live uint64) int {
	if live == 0 {
		return maxPercent
	}
	percent := max(roomBelow(heapFloor, live), min(defaultPercent, max(roomBelow(smallHeap, live), int64(live)*100/largeHeap)))
	return int(min(max(percent/25*25, minPercent), maxPercent))
}

// roomBelow is by how many percent a heap of live bytes may grow to remain below size.
func roomBelow(size int64, live uint64) int64 { return (size - int64(live)) * 100 / int64(live) }
