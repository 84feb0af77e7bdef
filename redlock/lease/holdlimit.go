// This file bounds how long a request's lease may last, for package maxhold.

package lease

import (
	"time"

	"redlockd/redlock/engine"
)

// HoldLimit bounds the hold that a request begins or goes on with.
type HoldLimit struct {
	Longest time.Duration                   // over all extensions; 0 = without an end
	EndsBy  time.Duration                   // no lease of the request lasts longer, on the pool's clock; 0 = as long as requested
	Mark    func(engine.Token) engine.Token // changes a generated token; nil = it stays
}

// limited is a mode with a limit.
type limited struct {
	Mode
	limit HoldLimit
}

// Limited is a mode of a request with a limit; without one, it has none.
func Limited(m Mode, h HoldLimit) Mode {
	t := ticketOf(m)
	if m = withoutPlace(m); m != nil {
		m = bare(m)
	}
	return Enqueued(&limited{m, h}, t)
}

// LimitOfHold is that limit.
func LimitOfHold(m Mode) (h HoldLimit) {
	if l, ok := withoutPlace(m).(*limited); ok {
		h = l.limit
	}
	return h
}

// bare is a mode without a place and a limit.
func bare(m Mode) Mode {
	m = withoutPlace(m)
	if l, ok := m.(*limited); ok {
		return l.Mode
	}
	return m
}

func (l *limited) token(fresh engine.Token) engine.Token {
	if l.limit.Mark != nil {
		fresh = l.limit.Mark(fresh)
	}
	return l.Mode.token(fresh)
}

func (l *limited) ballot(a *lockBallot) ballotMode {
	r := &a.call.request
	r.TTL = endingBy(l.limit.EndsBy, a.call.leases.engine.Recent(), r.TTL)
	return l.Mode.ballot(a)
}

// endingBy is the ttl of a lease that begins now.
func endingBy(end, now, ttl time.Duration) time.Duration {
	if end > 0 {
		ttl = min(ttl, end-now)
	}
	return ttl
}
