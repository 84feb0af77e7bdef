package admin

// latency.go measures how long lock requests take until they are decided.

import (
	"errors"
	"sort"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"redlockd/commands"
	"redlockd/pool"
	"redlockd/redlock"
)

// lockBounds reach from a quorum over loopback to the longest request without WAIT.
var lockBounds = prometheus.ExponentialBuckets(0.0001, 2, 16)

// waitBounds reach to the longest wait unless --max-wait is raised.
var waitBounds = prometheus.ExponentialBuckets(0.001, 3, 13)

// Latencies measures lock requests, from the moment they were read to their outcome.
type Grants struct{ locks, waits *outcomes }

// outcomeTimes is a histogram for each outcome, and a finer one of all of them.
type outcomes struct {
	times                       *prometheus.HistogramVec
	granted, refused, undecided prometheus.Observer
	all                         latencies
}

// NewLatencies makes empty histograms.
func NewGrants() *Grants {
	return &Grants{
		locks: newOutcomes("redlockd_lock_seconds", "Time from a lock request without WAIT to its outcome.", lockBounds),
		waits: newOutcomes("redlockd_wait_seconds", "Time from a lock request with WAIT or HOLD to its outcome.", waitBounds),
	}
}

func newOutcomes(name, help string, bounds []float64) *outcomes {
	times := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: bounds}, []string{"outcome"})
	return &outcomes{
		times: times, granted: times.WithLabelValues("granted"),
		refused: times.WithLabelValues("refused"), undecided: times.WithLabelValues("undecided"),
	}
}

// Measure wraps Locks with the histogram. It costs an allocation per request, so it is
// used only with the admin endpoint.
func (g *Grants) Measure(locks commands.Locks) commands.Locks { return &measured{locks, g.locks} }

// MeasureWaits is Measure for requests that wait.
func (g *Grants) MeasureWaits(waits commands.Waits) commands.Waits {
	return &measuredWaits{waits, g.waits}
}

type measured struct {
	commands.Locks
	outcomes *outcomes
}

type measuredWaits struct {
	commands.Waits
	outcomes *outcomes
}

func (m *measured) Lock(b *redlock.Batch, r redlock.LockRequest, done redlock.LockDone) {
	m.Locks.Lock(b, r, m.outcomes.before(done))
}

func (m *measuredWaits) Wait(b *redlock.Batch, r redlock.LockRequest, done redlock.LockDone) (leave func()) {
	return m.Waits.Wait(b, r, m.outcomes.before(done))
}

// timed returns done with the measurement added.
func (o *outcomes) before(done redlock.LockDone) redlock.LockDone {
	began := time.Now()
	return func(grant redlock.Grant, err error) {
		took := time.Since(began)
		o.of(err).Observe(took.Seconds())
		o.all.note(took)
		done(grant, err)
	}
}

func (o *outcomes) of(err error) prometheus.Observer {
	switch {
	case err == nil:
		return o.granted
	case errors.Is(err, redlock.ErrHeld):
		return o.refused
	}
	return o.undecided
}

// latencyCounts counts durations in the buckets of pool.Histogram, since the histogram of
// /metrics is too coarse for the last second and keeps only sums. The zero value is empty.
type latencies struct {
	counts [len(pool.Histogram{}.Counts)]atomic.Uint64
}

func (l *latencies) note(d time.Duration) {
	last := len(l.counts) - 1
	l.counts[sort.Search(last, func(i int) bool { return d < pool.Bound(i) })].Add(1)
}

// load returns the counts so far; Sum is not kept.
func (l *latencies) load() (h pool.Histogram) {
	for i := range l.counts {
		h.Counts[i] = l.counts[i].Load()
	}
	return h
}

// countsSince returns the counts after an earlier load.
func since(now, before pool.Histogram) pool.Histogram {
	for i := range now.Counts {
		now.Counts[i] -= min(before.Counts[i], now.Counts[i])
	}
	now.Sum -= before.Sum
	return now
}
