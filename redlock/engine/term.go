package engine

import (
	"time"

	"redlockd/pool"
	"redlockd/redlock/quorum"
)

// Term is how long a holder may rely on its lease.
type Term struct {
	until, ttl, start time.Duration // on the pool's clock; start is before the first command was queued
	clock             pool.Clock
}

// NewTerm is the term of a lease whose ballot began at start.
func (e *Engine) NewTerm(start, ttl time.Duration) Term {
	return Term{until: quorum.Deadline(start, ttl), ttl: ttl, start: start, clock: e.Clock}
}

// Validity is what is left for the holder now; ≤ 0 means it is used up.
func (t *Term) Validity() time.Duration { return t.until - t.clock.Now() }

// Left is Validity by a cheaper clock: never less, and more only by the time for which the
// machine was suspended since the last flush. It is for bookkeeping, never for a reply to a
// caller.
func (t *Term) Left() time.Duration { return t.until - pool.RecentNow(t.clock) }

// ExpiredError is the error for a lease that is used up before it could be handed over.
func (t *Term) ExpiredError() *Expired { return &Expired{Elapsed: t.Elapsed(), TTL: t.ttl} }

// Elapsed is the time since the ballot began.
func (t *Term) Elapsed() time.Duration { return t.clock.Now() - t.start }

// Until is when the validity ends, Began when the ballot began, both on the pool's clock.
func (t *Term) Until() time.Duration { return t.until }
func (t *Term) Began() time.Duration { return t.start }

// TTL is the lease that was requested.
func (t *Term) TTL() time.Duration { return t.ttl }
