package admin

// grants.go answers: how long does a client wait for a lock to be decided?

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"redlockd/commands"
	"redlockd/redlock"
)

// lockBounds reach from a quorum over loopback to the longest that is decided
// without waiting.
var lockBounds = prometheus.ExponentialBuckets(0.0001, 2, 16)

// waitBounds reach to the longest that anybody may wait unless --max-wait is raised.
var waitBounds = prometheus.ExponentialBuckets(0.001, 3, 13)

// Grants measures lock requests, from the moment they were read to their outcome.
type Grants struct{ locks, waits *outcomes }

// outcomes is a histogram for each outcome, and a finer one of all of them.
type outcomes struct {
	times                       *prometheus.HistogramVec
	granted, refused, undecided prometheus.Observer
	all                         latencies
}

// NewGrants makes empty histograms.
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

// Measure puts the histogram in front of what decides. It costs an allocation a
// request, so it stands there only when somebody looks.
func (g *Grants) Measure(locks commands.Locks) commands.Locks { return &measured{locks, g.locks} }

// MeasureWaits is Measure for what blocks.
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

// before is done with its time taken.
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
