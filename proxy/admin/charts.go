package admin

// charts.go keeps rates and latencies of the last minutes, second by second. It uses no
// clock and no goroutine: the poller adds a sample per poll.

import (
	"math"
	"time"

	"redlockd/pool"
	"redlockd/redlock"
)

// maxPoints is how far back charts reach, in polls of a second each.
const maxPoints = 180

// noValue marks a point without a measurement.
const noValue = -1

// sample contains the counters at one moment.
type sample struct {
	at      time.Time
	counts  redlock.Counters
	locks   pool.Histogram            // lock requests without WAIT
	masters map[string]pool.Histogram // round trips by the master's name
}

// charts are rates and latencies, the oldest first. All series are equally long.
type charts struct {
	Granted   []float64 `json:"granted"` // a second
	Refused   []float64 `json:"refused"`
	Undecided []float64 `json:"undecided"`
	P50       []int64   `json:"p50"` // µs
	P99       []int64   `json:"p99"`

	before  *sample
	masters map[string][]int64 // p99 of round trips, µs
}

// note adds a point; the first sample is only the base of the differences.
func (c *charts) note(now sample) {
	before := c.before
	c.before = &now
	if before == nil {
		return
	}
	seconds := now.at.Sub(before.at).Seconds()
	rate := func(now, before int64) float64 {
		return math.Round(10*float64(now-before)/math.Max(seconds, 0.001)) / 10
	}
	n, b := &now.counts, &before.counts
	c.Granted = appendPoint(c.Granted, rate(n.Acquired, b.Acquired))
	c.Refused = appendPoint(c.Refused, rate(n.Refused, b.Refused))
	c.Undecided = appendPoint(c.Undecided, rate(n.NoQuorum+n.Expired, b.NoQuorum+b.Expired))
	locks := countsSince(now.locks, before.locks)
	c.P50 = appendPoint(c.P50, micros(&locks, 0.5))
	c.P99 = appendPoint(c.P99, micros(&locks, 0.99))
	masters := make(map[string][]int64, len(now.masters))
	for name, trips := range now.masters {
		d := countsSince(trips, before.masters[name])
		masters[name] = appendPoint(c.masters[name], micros(&d, 0.99))
	}
	c.masters = masters
}

// appendPoint appends to a copy: series that were handed out never change.
func appendPoint[T any](series []T, next T) []T {
	series = series[max(0, len(series)+1-maxPoints):]
	return append(append(make([]T, 0, len(series)+1), series...), next)
}

// micros returns a quantile in µs, noValue without a measurement.
func micros(h *pool.Histogram, part float64) int64 {
	if h.Count() == 0 {
		return noValue
	}
	return h.Quantile(part).Microseconds()
}
