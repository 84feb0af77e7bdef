package proxy

// stats.go contains the counters of the server, and its warnings.

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"redlockd/commands"
)

type serverCounters struct {
	lastID, total, rejected, panics, commands, answeredTwice, slow, evicted atomic.Int64
}

// Stats returns a snapshot; its fields are read one after another.
func (s *Server) Stats() commands.ClientCounts {
	s.mu.Lock()
	connected := len(s.sessions)
	s.mu.Unlock()
	c := &s.counters
	return commands.ClientCounts{
		Connected: connected, Limit: s.options.MaxClients, Memory: s.memory.bytes(),
		Accepted: c.total.Load(), Rejected: c.rejected.Load(), Commands: c.commands.Load(),
		Slow: c.slow.Load(), Evicted: c.evicted.Load(), Panics: c.panics.Load(),
	}
}

// rareLog logs each warning at most once a minute: what causes them comes in floods.
type rareLog struct {
	out    *slog.Logger
	limits sync.Map // of *rate.Limiter, by text
}

func (l *rareLog) Warn(text string, args ...any) {
	limit, _ := l.limits.LoadOrStore(text, rate.NewLimiter(rate.Every(time.Minute), 1))
	if limit.(*rate.Limiter).Allow() {
		l.out.Warn(text, args...)
	}
}
