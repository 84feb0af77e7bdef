// Spans of work: attempts and their ends.

package tracing

import (
	"errors"

	"go.opentelemetry.io/otel/attribute"

	"redlockd/commands"
	"redlockd/redlock"
)

// Works traces the operations of next.
func (t *Tracer) Works(next commands.Works) commands.Works {
	if t == nil {
		return next
	}
	return &works{next, t}
}

type works struct {
	commands.Works
	tracer *Tracer
}

func (w *works) Work(b *redlock.Batch, r redlock.WorkRequest, done redlock.WorkCompletion) (leave func()) {
	o := w.tracer.begin(parentIn(r.Meta), "work.acquire")
	if o == nil {
		return w.Works.Work(b, r, done)
	}
	o.about(append(keyed(r.DB, r.Key),
		attribute.Int64("redlockd.timeout_ms", r.Timeout.Milliseconds()), attribute.Int64("redlockd.max", r.Max))...)
	r.Trace = &o.votes
	return w.Works.Work(b, r, func(work redlock.Work, err error) {
		word, failed := outcomeOf(err)
		var about []attribute.KeyValue
		if err == nil {
			word = string(work.State)
			about = append(about, attribute.Int64("redlockd.attempt", work.Attempt))
		}
		if work.State == redlock.WorkAcquired {
			about = append(about, attribute.Int64("redlockd.validity_ms", work.Validity().Milliseconds()), attribute.Int64("redlockd.fence", int64(work.Fence)))
			w.tracer.leases.note(leaseID{r.DB, r.Key, work.Token}, o.span.SpanContext(), work.Validity())
		}
		o.finish(word, failed, about...)
		done(work, err)
	})
}

// beginEnd traces the end or the extension of an attempt.
func (w *works) beginEnd(name string, r *redlock.WorkEndRequest, last bool) *operation {
	o := w.tracer.begin(w.tracer.leases.find(leaseID{r.DB, r.Key, r.Token}, last), name)
	if o != nil {
		o.about(keyed(r.DB, r.Key)...)
		r.Trace = &o.votes
	}
	return o
}

func (o *operation) ended(done redlock.WorkEndDone) redlock.WorkEndDone {
	if o == nil {
		return done
	}
	return func(ok bool, err error) {
		word, failed := yesOr(ok, outcomeGranted, "taken over", err)
		o.finish(word, failed)
		done(ok, err)
	}
}

func (w *works) WorkDone(b *redlock.Batch, r redlock.WorkEndRequest, done redlock.WorkEndDone) {
	o := w.beginEnd("work.done", &r, true)
	w.Works.WorkDone(b, r, o.ended(done))
}

func (w *works) WorkFail(b *redlock.Batch, r redlock.WorkEndRequest, done redlock.WorkEndDone) {
	o := w.beginEnd("work.fail", &r, true)
	w.Works.WorkFail(b, r, o.ended(done))
}

func (w *works) WorkExtend(b *redlock.Batch, r redlock.WorkEndRequest, done redlock.WorkExtendDone) {
	o := w.beginEnd("work.extend", &r, false)
	if o == nil {
		w.Works.WorkExtend(b, r, done)
		return
	}
	w.Works.WorkExtend(b, r, func(work redlock.Work, err error) {
		word, failed := outcomeOf(err)
		var about []attribute.KeyValue
		switch {
		case errors.Is(err, redlock.ErrNotHeld):
			word = "taken over"
		case err == nil:
			about = append(about, attribute.Int64("redlockd.validity_ms", work.Validity().Milliseconds()))
		}
		o.finish(word, failed, about...)
		done(work, err)
	})
}
