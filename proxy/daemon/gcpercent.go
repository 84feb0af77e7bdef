package daemon

// The garbage collector's percentage, adapted to the size of the heap.
//
// A daemon keeps a few megabytes live and, when busy, allocates a hundred in a
// second. Go collects when garbage equals the live heap, which is ten times a
// second then and slows the slowest requests most. So the heap may grow to
// heapFloor first.
//
// Above the floor the percentage is the number of megabytes that the daemon allocates in a
// second. So collections take a constant share of a processor, some 6 %, whatever is live,
// and a busy daemon has Go's own rule. One that allocates little saves memory: clients that
// send much and read nothing keep 35 MB live, and at 100 % the process needed 116 MB.
//
// Measured, medians of three interleaved runs, 64 callers of one client: pairs
// from 38 900 to 41 800 a second, acquire p99 from 2.11 to 1.68 ms; with a floor
// of 32 MB 7 kB more for each of a thousand hostile connections, and no faster.
//
// A floor of one second's allocations, at most 64 MB, took 5 to 9 % less processor time of
// a pair (256 callers, and 50 connections at depth 1 and 16; medians of nine interleaved
// rounds). But a thousand connections that send GET and read nothing then took 41 kB each in
// place of 30 (one run each), and 40 are allowed.

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	heapFloor      = 24 << 20
	minPercent     = 25
	defaultPercent = 100 // of the live heap: Go's own rule
	maxPercent     = 400
)

// adaptGCPercent sets Go's percentage after every collection, unless the operator
// set GOGC.
func adaptGCPercent() {
	if os.Getenv("GOGC") != "" {
		return
	}
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/heap/allocs:bytes"}}
	last, lastAllocated, lastTime := defaultPercent, uint64(0), time.Now()
	adjust := func() {
		metrics.Read(sample)
		live, allocated, now := sample[0].Value.Uint64(), sample[1].Value.Uint64(), time.Now()
		perSecond := float64(allocated-lastAllocated) / max(now.Sub(lastTime), time.Millisecond).Seconds()
		if next := percentFor(live, perSecond); next != last {
			debug.SetGCPercent(next)
			last = next
		}
		lastAllocated, lastTime = allocated, now
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

// percentFor lets a heap of live bytes grow to the floor, and further the faster the daemon
// allocates. It answers in steps of 25: each change of the setting stops the world for a
// moment.
func percentFor(live uint64, perSecond float64) int {
	if live == 0 {
		return maxPercent
	}
	floor := (int64(heapFloor) - int64(live)) * 100 / int64(live)
	busy := min(int64(perSecond)>>20, defaultPercent)
	return int(min(max(floor/25*25, busy/25*25, minPercent), maxPercent))
}
