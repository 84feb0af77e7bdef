// operation is one traced operation, from its request to the last vote on it.

package tracing

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"redlockd/redlock"
)

// operation is a span. It ends, for the collector, when the outcome is known;
// it is sent when every queried master has voted, too.
type operation struct {
	span  trace.Span
	votes redlock.Trace

	mu   sync.Mutex
	open int // votes that are still to come
	end  time.Time
}

// begin starts a span, or returns nil if the operation is not wanted.
func (t *Tracer) begin(parent trace.SpanContext, name string) *operation {
	if !t.wanted(parent) {
		return nil
	}
	ctx := context.Background()
	if parent.IsValid() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, parent)
	}
	o := &operation{}
	_, o.span = t.spans.Start(ctx, name, trace.WithSpanKind(trace.SpanKindServer))
	o.votes = redlock.Trace{OnBallot: o.expectVotes, OnVote: o.recordVote}
	return o
}

// about adds what the operation requests.
func (o *operation) about(attributes ...attribute.KeyValue) { o.span.SetAttributes(attributes...) }

func (o *operation) expectVotes(votes int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.open += votes
}

func (o *operation) recordVote(v redlock.Vote) {
	about := []attribute.KeyValue{
		attribute.String("redlockd.master", v.Master),
		attribute.String("redlockd.vote", v.Word),
		attribute.Float64("redlockd.latency_ms", v.Took.Seconds()*1000),
	}
	if v.Cause != "" {
		about = append(about, attribute.String("redlockd.cause", v.Cause))
	}
	o.span.AddEvent("vote", trace.WithAttributes(about...))
	o.mu.Lock()
	o.open--
	o.mu.Unlock()
	o.sendIfOver()
}

// finish takes the outcome.
func (o *operation) finish(outcome string, err error, about ...attribute.KeyValue) {
	o.span.SetAttributes(append(about, attribute.String("redlockd.outcome", outcome))...)
	if err != nil {
		o.span.SetStatus(codes.Error, err.Error())
	}
	o.mu.Lock()
	o.end = time.Now()
	o.mu.Unlock()
	o.sendIfOver()
}

func (o *operation) sendIfOver() {
	o.mu.Lock()
	end, over := o.end, o.open == 0 && !o.end.IsZero()
	o.mu.Unlock()
	if over {
		o.span.End(trace.WithTimestamp(end))
	}
}

// Outcomes, of which the first three are decisions and no errors.
const (
	outcomeGranted = "granted"
	outcomeRefused = "refused"
	outcomeNotHeld = "not held"
)

// outcomeOf is the word for how an operation ended; failed is nil if it was decided.
func outcomeOf(err error) (word string, failed error) {
	var (
		noQuorum *redlock.NoQuorum
		expired  *redlock.Expired
		busy     *redlock.Busy
		deadlock *redlock.Deadlock
	)
	switch {
	case err == nil:
		return outcomeGranted, nil
	case errors.Is(err, redlock.ErrHeld):
		return outcomeRefused, nil
	case errors.Is(err, redlock.ErrNotHeld):
		return outcomeNotHeld, nil
	case errors.Is(err, redlock.ErrLeft):
		return "client gone", nil
	case errors.As(err, &noQuorum):
		return "no quorum", err
	case errors.As(err, &expired):
		return "expired", err
	case errors.As(err, &busy):
		return "try later", err
	case errors.As(err, &deadlock):
		return "deadlock", err
	case errors.Is(err, redlock.ErrShutdown):
		return "shutdown", err
	case errors.Is(err, redlock.ErrWrongType):
		return "wrong type", err
	}
	return "error", err
}

// yesOr is the outcome of what is answered yes or no.
func yesOr(yes bool, word, otherwise string, err error) (string, error) {
	switch {
	case err != nil:
		return outcomeOf(err)
	case yes:
		return word, nil
	}
	return otherwise, nil
}
