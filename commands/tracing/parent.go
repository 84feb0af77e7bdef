// The parent of an operation's span: the trace that the operation belongs to.

package tracing

import (
	"context"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"redlockd/redlock"
)

// parentWord begins the name of a client's trace, as one of the words of META, followed by
// a traceparent as W3C Trace Context defines it.
const parentWord = "traceparent="

// parentIn reads META; what is not a traceparent is a note for people.
func parentIn(meta string) trace.SpanContext {
	at := strings.Index(meta, parentWord)
	if at < 0 || at > 0 && meta[at-1] != ' ' {
		return trace.SpanContext{}
	}
	value, _, _ := strings.Cut(meta[at+len(parentWord):], " ")
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{"traceparent": value})
	return trace.SpanContextFromContext(ctx)
}

// leaseTraces are the traces of leases that were taken through a span, so that what
// becomes of a lease is found in the trace in which it was taken.
type leaseTraces struct {
	count atomic.Int64 // 0 lets every release pass without a search

	mu   sync.Mutex
	byID map[leaseID]leaseTrace
}

type leaseID struct {
	db    int
	key   redlock.Key
	token redlock.Token
}

type leaseTrace struct {
	by    trace.SpanContext
	until time.Time
}

// maxLeases bounds what is remembered; beyond it a release starts a trace of its own.
const maxLeases = 8192

func (l *leaseTraces) note(id leaseID, by trace.SpanContext, left time.Duration) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.byID) >= maxLeases {
		maps.DeleteFunc(l.byID, func(_ leaseID, old leaseTrace) bool { return old.until.Before(now) })
	}
	if len(l.byID) < maxLeases {
		l.byID[id] = leaseTrace{by, now.Add(left)}
	}
	l.count.Store(int64(len(l.byID)))
}

// noteGrant notes the trace of a granted or extended lease; by may be invalid.
func (l *leaseTraces) noteGrant(g *redlock.Grant, by trace.SpanContext) {
	if !by.IsValid() {
		return
	}
	for i, key := range g.Keys() {
		l.note(leaseID{g.DB(), key, g.TokenOf(i)}, by, g.Validity())
	}
}

// find is the span that took the lease; forget is for its end.
func (l *leaseTraces) find(id leaseID, forget bool) trace.SpanContext {
	if l.count.Load() == 0 {
		return trace.SpanContext{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	by := l.byID[id].by
	if forget {
		delete(l.byID, id)
		l.count.Store(int64(len(l.byID)))
	}
	return by
}
