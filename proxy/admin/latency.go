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
type Latencies struct{ locks, waits *outcomeTimes }

// outcomeTimes is a histogram for each outcome, and a finer one of all of them.
type outcomeTimes struct {
	times                       *prometheus.HistogramVec
	granted, refused, undecided prometheus.Observer
	all                         latencyCounts
}

// NewLatencies makes empty histograms.
func NewLatencies() *Latencies {
	return &Latencies{
		locks: newOutcomeTimes("redlockd_lock_seconds", "Time from a lock request without WAIT to its outcome.", lockBounds),
		waits: newOutcomeTimes("redlockd_wait_seconds", "Time from a lock request with WAIT or HOLD to its outcome.", waitBounds),
	}
}

func newOutcomeTimes(name, help string, bounds []float64) *outcomeTimes {
	times := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: bounds}, []string{"outcome"})
	return &outcomeTimes{
		times: times, granted: times.WithLabelValues("granted"),
		refused: times.WithLabelValues("refused"), undecided: times.WithLabelValues("undecided"),
	}
}

// Measure wraps Locks with the histograms. It costs an allocation per request, so it is
// used only with the admin endpoint.
func (g *Latencies) Measure(locks commands.Locks) commands.Locks {
	return &measuredLocks{locks, g}
}

type measuredLocks struct {
	commands.Locks
	outcomes *Latencies
}

func (m *measuredLocks) Lock(b *redlock.Batch, r redlock.LockRequest, done redlock.LockDone) {
	m.Locks.Lock(b, r, m.outcomes.locks.timed(done))
}

func (m *measuredLocks) Wait(b *redlock.Batch, r redlock.LockRequest, done redlock.LockDone) (leave func()) {
	return m.Locks.Wait(b, r, m.outcomes.waits.timed(done))
}

// timed returns done with the measurement added.
func (o *outcomeTimes) timed(done redlock.LockDone) redlock.LockDone {
	began := time.Now()
	return func(grant redlock.Grant, err error) {
		took := time.Since(began)
		o.observer(err).Observe(took.Seconds())
		o.all.note(took)
		done(grant, err)
	}
}

func (o *outcomeTimes) observer(err error) prometheus.Observer {
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
type latencyCounts struct {
	counts [len(pool.Histogram{}.Counts)]atomic.Uint64
}

func (l *latencyCounts) note(d time.Duration) {
	last := len(l.counts) - 1
	l.counts[sort.Search(last, func(i int) bool { return d < pool.Bound(i) })].Add(1)
}

// load returns the counts so far; Sum is not kept.
func (l *latencyCounts) load() (h pool.Histogram) {
	for i := range l.counts {
		h.Counts[i] = l.counts[i].Load()
	}
	return h
}
