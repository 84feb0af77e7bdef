package lease

import (
	"log/slog"
	"sync/atomic"
	"time"

	"redlockd/redlock/engine"
)

const (
	// shortLease bounds the leases that are suspected: a program that means seconds writes 30 or 600.
	shortLease = time.Second
	// shortLeaseLines is the time between two lines of the log.
	shortLeaseLines = time.Minute
)

// ShortLeases finds programs that gave seconds where milliseconds are expected. Their leases are over
// long before their work, and nothing fails: a lease of less than a second that ended before its
// release is the only trace. One such lease may be an accident, so it is logged and counted, not refused.
type ShortLeases struct {
	engine   *engine.Engine
	logger   *slog.Logger
	over     atomic.Int64
	nextLine atomic.Int64 // ns of the engine's clock; none is written before
}

var _ observer = (*ShortLeases)(nil)

// WatchShortLeases logs and counts short leases from now on.
func WatchShortLeases(l *Leases, logger *slog.Logger) *ShortLeases {
	s := &ShortLeases{engine: l.engine, logger: logger}
	l.observers = append(l.observers, s)
	return s
}

// Over counts the short leases that ended before their release.
func (s *ShortLeases) Over() int64 { return s.over.Load() }

func (*ShortLeases) changed(change, engine.LeaseID, leaseRecord, time.Duration, time.Duration, *LockRequest) {
}

// ends reads no clock for a lease that is long, or that another daemon granted.
func (s *ShortLeases) ends(_ *engine.Batch, id engine.LeaseID, known leaseRecord) {
	lasted := known.until - known.granted
	if known.granted == 0 || lasted >= shortLease {
		return
	}
	now := s.engine.Recent()
	if known.until > now {
		return
	}
	s.over.Add(1)
	next := s.nextLine.Load()
	if int64(now) < next || !s.nextLine.CompareAndSwap(next, int64(now+shortLeaseLines)) {
		return
	}
	client := ""
	if known.requester != nil {
		client = known.requester.Addr
	}
	s.logger.Warn("short lease was over before its release", "key", string(id.Key), "db", id.DB, "client", client,
		"lease_ms", lasted.Milliseconds(), "release_late_ms", (now - known.until).Milliseconds(),
		"hint", "times are milliseconds: DLOCK key 30000 lasts 30 s, and DLOCK key 30 ends after 30 ms")
}
