package proxy

// stats.go contains the counters of the server, and its warnings.

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

type serverCounters struct {
	lastID, total, rejected, panics, commands, answeredTwice, slow, evicted atomic.Int64
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
