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

// Grants measures lock requests, from the moment they were read to their outcome.
type Grants struct {
	times                       *prometheus.HistogramVec
	granted, refused, undecided prometheus.Observer
}

// NewGrants makes an empty histogram.
func NewGrants() *Grants {
	times := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "redlockd_lock_seconds", Help: "Time from a lock request to its outcome.", Buckets: lockBounds,
	}, []string{"outcome"})
	return &Grants{
		times: times, granted: times.WithLabelValues("granted"),
		refused: times.WithLabelValues("refused"), undecided: times.WithLabelValues("undecided"),
	}
}

// Measure puts the histogram in front of what decides. It costs an allocation a
// request, so it stands there only when somebody looks.
func (g *Grants) Measure(locks commands.Locks) commands.Locks { return &measured{locks, g} }

type measured struct {
	commands.Locks
	grants *Grants
}

func (m *measured) Lock(b *redlock.Batch, r redlock.LockRequest, done redlock.LockDone) {
	began := time.Now()
	m.Locks.Lock(b, r, func(grant redlock.Grant, err error) {
		m.grants.outcome(err).Observe(time.Since(began).Seconds())
		done(grant, err)
	})
}

func (g *Grants) outcome(err error) prometheus.Observer {
	switch {
	case err == nil:
		return g.granted
	case errors.Is(err, redlock.ErrHeld):
		return g.refused
	}
	return g.undecided
}
