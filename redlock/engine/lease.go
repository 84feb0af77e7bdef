package engine

import (
	"time"

	"redlockd/pool"
	"redlockd/redlock/quorum"
)

// Lease is what a holder may rely on.
type Lease struct {
	until, ttl, start time.Duration // on the pool's clock
	clock             pool.Clock
}

// NewLease is a lease of a ballot that began at start.
func (e *Engine) NewLease(start, ttl time.Duration) Lease {
	return Lease{until: quorum.Deadline(start, ttl), ttl: ttl, start: start, clock: e.Clock}
}

// Validity is what is left; ≤ 0 means it is used up.
func (l *Lease) Validity() time.Duration { return l.until - l.clock.Now() }

// Expired is the error for a lease that is used up before it could be handed over.
func (l *Lease) Expired() *Expired { return &Expired{Elapsed: l.clock.Now() - l.start, TTL: l.ttl} }
