package admin

// latency.go measures how long lock requests take until they are decided, and counts the
// outcomes by prefix of the key.

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"sync"
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

// outcomes are the values of the label outcome, in the order of outcomeOf.
var outcomes = [...]string{"granted", "refused", "undecided"}

func outcomeOf(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, redlock.ErrHeld):
		return 1
	}
	return 2
}

// otherKeys is the label of keys without one of --metrics-prefixes.
const otherKeys = "other"

// Latencies measures lock requests, from the moment they were read to their outcome.
type Latencies struct {
	locks, waits *outcomeTimes
	results      *prometheus.CounterVec
	byPrefix     []prefixCounts // the longest prefix first; the last one is "", which every key has
}

// outcomeTimes is a histogram for each outcome, and a finer one of all of them: those of /metrics
// are too coarse for the last second.
type outcomeTimes struct {
	times     *prometheus.HistogramVec
	byOutcome [len(outcomes)]prometheus.Observer

	mu  sync.Mutex
	all pool.Histogram
}

// prefixCounts are the outcomes of requests for keys with a prefix.
type prefixCounts struct {
	prefix    string
	byOutcome [len(outcomes)]prometheus.Counter
}

// NewLatencies makes empty histograms. Requests are counted by these prefixes of keys.
func NewLatencies(prefixes ...string) *Latencies {
	l := &Latencies{
		locks: newOutcomeTimes("redlockd_lock_seconds", "Time from a lock request without WAIT to its outcome.", lockBounds),
		waits: newOutcomeTimes("redlockd_wait_seconds", "Time from a lock request with WAIT or HOLD to its outcome.", waitBounds),
		results: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "redlockd_dlock_results_total",
			Help: "Lock requests (DLOCK, DMLOCK, SET NX and scripts that lock) by outcome and by prefix of the first key, see --metrics-prefixes; other has the keys without one.",
		}, []string{"prefix", "outcome"}),
	}
	longestFirst := slices.SortedFunc(slices.Values(prefixes), func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	for _, prefix := range append(longestFirst, "") {
		counts := prefixCounts{prefix: prefix}
		for i, outcome := range outcomes {
			counts.byOutcome[i] = l.results.WithLabelValues(cmp.Or(prefix, otherKeys), outcome)
		}
		l.byPrefix = append(l.byPrefix, counts)
	}
	return l
}

func newOutcomeTimes(name, help string, bounds []float64) *outcomeTimes {
	o := &outcomeTimes{times: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: bounds}, []string{"outcome"})}
	for i, outcome := range outcomes {
		o.byOutcome[i] = o.times.WithLabelValues(outcome)
	}
	return o
}

// Measure wraps Locks with the measurement. It costs an allocation per request, so it is
// used only with the admin endpoint.
func (l *Latencies) Measure(locks commands.Locks) commands.Locks {
	return &measuredLocks{locks, l}
}

type measuredLocks struct {
	commands.Locks
	latencies *Latencies
}

func (m *measuredLocks) Lock(b *redlock.Batch, r redlock.LockRequest, done redlock.LockDone) {
	m.Locks.Lock(b, r, m.latencies.measured(m.latencies.locks, r.Key, done))
}

func (m *measuredLocks) Wait(b *redlock.Batch, r redlock.LockRequest, done redlock.LockDone) (leave func()) {
	return m.Locks.Wait(b, r, m.latencies.measured(m.latencies.waits, r.Key, done))
}

// measured returns done with the measurement added.
func (l *Latencies) measured(o *outcomeTimes, key redlock.Key, done redlock.LockDone) redlock.LockDone {
	began := time.Now()
	counts := &l.byPrefix[slices.IndexFunc(l.byPrefix, func(c prefixCounts) bool { return strings.HasPrefix(string(key), c.prefix) })]
	return func(grant redlock.Grant, err error) {
		took, outcome := time.Since(began), outcomeOf(err)
		o.byOutcome[outcome].Observe(took.Seconds())
		o.note(took)
		counts.byOutcome[outcome].Inc()
		done(grant, err)
	}
}

func (o *outcomeTimes) note(took time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all.Note(took)
}

func (o *outcomeTimes) load() pool.Histogram {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all
}
