// queue sends spans to the collector; no operation waits for it.

package tracing

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

const (
	// maxBatch is how many spans are sent at once, and batchInterval how often fewer are:
	// spans are for people, to whom a second is short.
	maxBatch      = 512
	batchInterval = time.Second
	// maxTries of a batch that the collector may still accept, with a retryPause that
	// doubles between them; meanwhile the queue fills.
	maxTries   = 3
	retryPause = time.Second
	// logInterval is the least time between two lines in the log about lost spans.
	logInterval = time.Minute
)

// spanSender delivers spans. It returns how many the collector refused for good, and
// whether a failure may be over when it is tried again.
type spanSender interface {
	send(context.Context, []sdktrace.ReadOnlySpan) (refused int64, again bool, err error)
	forget() // connections that are idle
}

// queue takes spans that have ended and never blocks: what does not fit is
// dropped and counted.
type queue struct {
	to     spanSender
	logger *slog.Logger
	spans  chan sdktrace.ReadOnlySpan // as many as may wait
	ending chan struct{}              // closed by close …
	once   sync.Once                  // … the first time
	ended  chan struct{}              // closed by run
	abort  context.CancelFunc         // ends a delivery under way

	sent, dropped atomic.Int64

	logged     int64 // dropped, when it was last logged
	lastLogged time.Time
}

var _ sdktrace.SpanProcessor = (*queue)(nil)

func newQueue(size int, to spanSender, logger *slog.Logger) *queue {
	ctx, abort := context.WithCancel(context.Background())
	q := &queue{
		to: to, logger: logger, abort: abort,
		spans:  make(chan sdktrace.ReadOnlySpan, size),
		ending: make(chan struct{}), ended: make(chan struct{}),
	}
	go q.run(ctx)
	return q
}

// OnStart has nothing to do.
func (q *queue) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

// OnEnd takes a span. It is called where votes are counted.
func (q *queue) OnEnd(s sdktrace.ReadOnlySpan) {
	select {
	case q.spans <- s:
	default:
		q.dropped.Add(1)
	}
}

// ForceFlush is the provider's; it is never called.
func (q *queue) ForceFlush(context.Context) error { return nil }

// Shutdown is the provider's; the queue is ended by close.
func (q *queue) Shutdown(context.Context) error { return nil }

// run sends what comes until close.
func (q *queue) run(ctx context.Context) {
	defer close(q.ended)
	defer q.to.forget()
	tick := time.NewTicker(batchInterval)
	defer tick.Stop()
	var batch []sdktrace.ReadOnlySpan
	for {
		select {
		case s := <-q.spans:
			if batch = append(batch, s); len(batch) < maxBatch {
				continue
			}
		case <-tick.C:
		case <-q.ending:
			q.sendRest(ctx, batch)
			return
		}
		q.deliver(ctx, batch)
		batch = nil
	}
}

// sendRest sends the rest at the end: no second tries, and nothing after a failure.
func (q *queue) sendRest(ctx context.Context, batch []sdktrace.ReadOnlySpan) {
	for {
		select {
		case s := <-q.spans:
			if batch = append(batch, s); len(batch) < maxBatch {
				continue
			}
		default:
		}
		if len(batch) == 0 {
			return
		}
		if !q.deliver(ctx, batch) {
			q.dropped.Add(int64(len(q.spans)))
			return
		}
		batch = nil
	}
}

// deliver sends a batch, or drops it.
func (q *queue) deliver(ctx context.Context, batch []sdktrace.ReadOnlySpan) bool {
	var failed error
	defer func() { q.logDropped(failed) }()
	if len(batch) == 0 {
		return true
	}
	for try := 0; ; try++ {
		refused, again, err := q.to.send(ctx, batch)
		if err == nil {
			q.dropped.Add(refused)
			q.sent.Add(int64(len(batch)) - refused)
			return true
		}
		failed = err
		if !again || try+1 == maxTries || !q.sleep(retryPause<<try) {
			q.dropped.Add(int64(len(batch)))
			return false
		}
	}
}

// sleep pauses; false means that the queue is ending.
func (q *queue) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-q.ending:
		return false
	}
}

// logDropped logs that spans are lost, at most once in logInterval.
func (q *queue) logDropped(failed error) {
	dropped := q.dropped.Load()
	if dropped == q.logged || !q.lastLogged.IsZero() && time.Since(q.lastLogged) < logInterval {
		return
	}
	if failed != nil {
		q.logger.Warn("traces dropped", "spans", dropped-q.logged, "err", failed)
	} else {
		q.logger.Warn("traces dropped", "spans", dropped-q.logged, "err", "the queue is full", "hint", "lower otlp-sample")
	}
	q.logged, q.lastLogged = dropped, time.Now()
}

// close sends what is there until ctx ends.
func (q *queue) close(ctx context.Context) {
	q.once.Do(func() { close(q.ending) })
	select {
	case <-q.ended:
	case <-ctx.Done():
	}
	q.abort()
	<-q.ended
}
