package proxy

// stats.go contains the counters of the server, and a limit for its warnings.

import (
	"sync"
	"sync/atomic"
	"time"
)

type serverCounters struct {
	lastID, total, rejected, panics, commands, answeredTwice, slow, evicted, lost atomic.Int64
}

// Stats counts since New; Connected is now.
type Stats struct {
	Connected     int   // clients being served
	Total         int64 // clients accepted
	Rejected      int64 // clients rejected, see MaxClients and MaxConnects
	Panics        int64 // panics recovered; each closed at most one connection
	Commands      int64 // commands read
	AnsweredTwice int64 // second answers dropped; anything but 0 is a bug
	SlowClients   int64 // clients closed because they left replies or messages unread
	Evicted       int64 // clients closed because all of them, or one user's, had too much memory
	Memory        int   // bytes of ClientMemory in use
	Lost          int64 // deferred replies whose client had gone
}

// Stats returns a snapshot; its fields are read one after another.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	connected := len(s.sessions)
	s.mu.Unlock()
	return Stats{
		Connected:     connected,
		Total:         s.counters.total.Load(),
		Rejected:      s.counters.rejected.Load(),
		Panics:        s.counters.panics.Load(),
		Commands:      s.counters.commands.Load(),
		AnsweredTwice: s.counters.answeredTwice.Load(),
		SlowClients:   s.counters.slow.Load(),
		Evicted:       s.counters.evicted.Load(),
		Memory:        s.memory.bytes(),
		Lost:          s.counters.lost.Load(),
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
