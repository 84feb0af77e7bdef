// Spans of ids. The round that gives them may serve other requests, too: its votes
// are those of all of them.

package tracing

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"redlockd/commands"
	"redlockd/redlock"
)

// IDs traces the operations of next.
func (t *Tracer) IDs(next commands.IDs) commands.IDs {
	if t == nil {
		return next
	}
	return &ids{next, t}
}

type ids struct {
	commands.IDs
	tracer *Tracer
}

func (i *ids) NextID(b *redlock.Batch, r redlock.IDRequest, done redlock.IDDone) {
	o := i.tracer.begin(trace.SpanContext{}, "ids.next")
	if o == nil {
		i.IDs.NextID(b, r, done)
		return
	}
	o.about(append(keyed(r.DB, r.Name), attribute.Int64("redlockd.count", r.Count))...)
	r.Trace = &o.votes
	i.IDs.NextID(b, r, func(first int64, err error) {
		var about []attribute.KeyValue
		if err == nil {
			about = append(about, attribute.Int64("redlockd.first", first))
		}
		word, failed := outcomeOf(err)
		o.finish(word, failed, about...)
		done(first, err)
	})
}
