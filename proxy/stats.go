package proxy

// stats.go contains the counters of the server, and a limit for its warnings.

import (
	"sync"
	"sync/atomic"
	"time"

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

// oncePerMinute allows an event at most once a minute. The zero value is ready.
type oncePerMinute struct {
	mu   sync.Mutex
	last time.Time
}

func (r *oncePerMinute) allow() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.last.IsZero() && time.Since(r.last) < time.Minute {
		return false
	}
	r.last = time.Now()
	return true
}
