package main

// memory.go answers: how often is garbage collected?
//
// A daemon keeps a few megabytes and, when busy, leaves a hundred behind in a
// second. Go collects when there is as much garbage as there are things in use,
// which is ten times a second then, and costs the slowest requests most. So the
// heap may grow to heapFloor first. What a crowd of connections occupies is not
// affected: above the floor it is Go's own rule.
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
	heapFloor   = 24 << 20
	usual       = 100 // percent of what is in use
	mostPercent = 400
)

// collectLess sets Go's percentage after every collection, unless GOGC says what
// whoever runs the daemon wants.
func collectLess() {
	if os.Getenv("GOGC") != "" {
		return
	}
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	last := usual
	adjust := func() {
		metrics.Read(sample)
		if next := percentFor(sample[0].Value.Uint64()); next != last {
			debug.SetGCPercent(next)
			last = next
		}
	}
	// Nobody keeps it, so every collection finds it, and it tells of the collection.
	type sentinel struct{ _ [64]byte }
	var again func(*sentinel)
	again = func(s *sentinel) {
		adjust()
		runtime.SetFinalizer(s, again)
	}
	s := &sentinel{}
	runtime.SetFinalizer(s, again)
}

// percentFor lets a heap with so many bytes in use grow to the floor, in steps of
// 25: the setting stops the world for a moment.
func percentFor(live uint64) int {
	if live == 0 {
		return mostPercent
	}
	room := (int64(heapFloor) - int64(live)) * 100 / int64(live)
	return int(min(max(room/25*25, usual), mostPercent))
}
