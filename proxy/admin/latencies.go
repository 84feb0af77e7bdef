package admin

// latencies.go answers: how long did lock requests take within the last second?
// The histogram of /metrics is too coarse for that and knows only sums.

import (
	"sort"
	"sync/atomic"
	"time"

	"redlockd/pool"
)

// latencies counts durations in the buckets of pool.Histogram. The zero value is
// empty.
type latencies struct {
	counts [len(pool.Histogram{}.Counts)]atomic.Uint64
}

func (l *latencies) note(d time.Duration) {
	last := len(l.counts) - 1
	l.counts[sort.Search(last, func(i int) bool { return d < pool.Bound(i) })].Add(1)
}

// load is what was counted so far; its Sum is not kept.
func (l *latencies) load() (h pool.Histogram) {
	for i := range l.counts {
		h.Counts[i] = l.counts[i].Load()
	}
	return h
}

// since is what was counted after an earlier look.
func since(now, before pool.Histogram) pool.Histogram {
	for i := range now.Counts {
		now.Counts[i] -= min(before.Counts[i], now.Counts[i])
	}
	now.Sum -= before.Sum
	return now
}
