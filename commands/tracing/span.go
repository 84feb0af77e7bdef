// operation is one traced operation, from its request to the last vote on it.

package tracing

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"redlockd/commands"
	"redlockd/redlock"
)

type attributes = []attribute.KeyValue

// operation is a span. It ends, for the collector, when the outcome is known;
// it is sent when every queried master has voted, too.
type operation struct {
	span    trace.Span
	votes   redlock.Trace
	notHeld string // the outcome of a "no"

	mu   sync.Mutex
	open int // votes that are still to come
	end  time.Time
}

// begin starts a span, or returns nil if the operation is not wanted.
func (t *Tracer) begin(name string, parent trace.SpanContext) *operation {
	if !t.wanted(parent) {
		return nil
	}
	ctx := context.Background()
	if parent.IsValid() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, parent)
	}
	o := &operation{notHeld: "not held"}
	_, o.span = t.spans.Start(ctx, name, trace.WithSpanKind(trace.SpanKindServer))
	o.votes = redlock.Trace{OnBallot: o.expectVotes, OnVote: o.recordVote}
	return o
}

// about adds what the operation requests. It returns what receives the votes.
func (o *operation) about(db int, key redlock.Key, more []redlock.Key, further ...attribute.KeyValue) *redlock.Trace {
	o.span.SetAttributes(attribute.Int("redlockd.database", db), attribute.String("redlockd.key", string(key)))
	if len(more) > 0 {
		all := []string{string(key)}
		for _, one := range more {
			all = append(all, string(one))
		}
		o.span.SetAttributes(attribute.StringSlice("redlockd.keys", all))
	}
	o.span.SetAttributes(further...)
	return &o.votes
}

func (o *operation) expectVotes(votes int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.open += votes
}

func (o *operation) recordVote(v redlock.Vote) {
	about := attributes{
		attribute.String("redlockd.master", v.Master),
		attribute.String("redlockd.vote", v.Word),
		attribute.Float64("redlockd.latency_ms", v.Took.Seconds()*1000),
	}
	if v.Cause != "" {
		about = append(about, attribute.String("redlockd.cause", v.Cause))
	}
	o.span.AddEvent("vote", trace.WithAttributes(about...))
	o.sendIfOver(-1, time.Time{})
}

// finish takes the outcome; word and about are those of a decision.
func (o *operation) finish(word string, about attributes, err error) {
	if err != nil {
		var failed bool
		if word, failed = o.undecided(err); failed {
			o.span.SetStatus(codes.Error, err.Error())
		}
	}
	o.span.SetAttributes(append(about, attribute.String("redlockd.outcome", word))...)
	o.sendIfOver(0, time.Now())
}

// sendIfOver takes a vote or the time of the outcome. The span is over with both.
func (o *operation) sendIfOver(votes int, end time.Time) {
	o.mu.Lock()
	o.open += votes
	if !end.IsZero() {
		o.end = end
	}
	end, over := o.end, o.open == 0 && !o.end.IsZero()
	o.mu.Unlock()
	if over {
		o.span.End(trace.WithTimestamp(end))
	}
}

const granted = "granted"

// failures are the outcomes that leave an operation undecided, by the code of its reply.
var failures = map[string]string{
	"NOQUORUM": "no quorum", "EXPIRED": "expired", "TRYLATER": "try later",
	"DEADLOCK": "deadlock", "SHUTDOWN": "shutdown", "WRONGTYPE": "wrong type",
}

// undecided is the word for an operation that ended with err; failed is false if that is a
// decision all the same.
func (o *operation) undecided(err error) (word string, failed bool) {
	switch {
	case errors.Is(err, redlock.ErrHeld):
		return "refused", false
	case errors.Is(err, redlock.ErrNotHeld):
		return o.notHeld, false
	case errors.Is(err, redlock.ErrLeft):
		return "client gone", false
	}
	return cmp.Or(failures[commands.Code(err)], "error"), true
}

// decided is the outcome of what is answered yes or no.
func (o *operation) decided(yes string) func(bool) (string, attributes) {
	return func(ok bool) (string, attributes) {
		if ok {
			return yes, nil
		}
		return o.notHeld, nil
	}
}

// observed ends the span of o before done; outcome describes a result without an error.
func observed[T any](o *operation, done func(T, error), outcome func(T) (string, attributes)) func(T, error) {
	return func(result T, err error) {
		var word string
		var about attributes
		if err == nil {
			word, about = outcome(result)
		}
		o.finish(word, about, err)
		done(result, err)
	}
}
