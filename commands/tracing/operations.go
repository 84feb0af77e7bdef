// The traced operations: each begins a span, requests its votes and ends it with the
// outcome. Reads are not traced.

package tracing

import (
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"redlockd/commands"
	"redlockd/redlock"
)

// Operations has the operations that the commands work with.
type Operations struct {
	commands.Locks
	commands.IDs
	commands.Works
	commands.RedisCompat
}

// Wrap traces the operations of next.
func (t *Tracer) Wrap(next Operations) Operations {
	if t == nil {
		return next
	}
	e := &traced{next, t}
	return Operations{e, e, e, e}
}

type traced struct {
	Operations
	tracer *Tracer
}

func (t *traced) Lock(b *redlock.Batch, r redlock.LockRequest, done redlock.LockDone) {
	done = t.acquire(&r, done)
	t.Locks.Lock(b, r, done)
}

func (t *traced) Wait(b *redlock.Batch, r redlock.LockRequest, done redlock.LockDone) (leave func()) {
	done = t.acquire(&r, done)
	return t.Locks.Wait(b, r, done)
}

func (t *traced) acquire(r *redlock.LockRequest, done redlock.LockDone) redlock.LockDone {
	o := t.tracer.begin("lock.acquire", parentIn(r.Meta()))
	if o == nil {
		return done
	}
	var requester redlock.Requester
	if r.Requester != nil {
		requester = *r.Requester
	}
	requester.Trace = o.about(r.DB, r.Key, r.More, acquireAttributes(r)...)
	r.Requester = &requester
	return observed(o, done, func(g redlock.Grant) (string, attributes) {
		t.tracer.leases.noteGrant(&g, o.span.SpanContext())
		return granted, leaseAttributes(g.Validity(), g.Fence)
	})
}

func acquireAttributes(r *redlock.LockRequest) attributes {
	about := attributes{attribute.String("redlockd.mode", r.Kind().Word(redlock.LevelOwner(r.Mode) != "")), ttlAttribute(r.TTL)}
	if limit := redlock.LimitOf(r.Mode); limit > 0 {
		about = append(about, attribute.Int("redlockd.limit", limit))
	}
	if r.Wait > 0 {
		about = append(about, attribute.Int64("redlockd.wait_ms", r.Wait.Milliseconds()))
	}
	for name, set := range map[string]bool{"fair": r.Fair, "hold": r.Hold != nil, "drop_in": redlock.HasClientValues(r.Mode)} {
		if set {
			about = append(about, attribute.Bool("redlockd."+name, true))
		}
	}
	return about
}

func ttlAttribute(ttl time.Duration) attribute.KeyValue {
	return attribute.Int64("redlockd.ttl_ms", ttl.Milliseconds())
}

// leaseAttributes describe what was given; an extension keeps its fence and reports none.
func leaseAttributes(validity time.Duration, fence redlock.Fence) attributes {
	about := attributes{attribute.Int64("redlockd.validity_ms", validity.Milliseconds())}
	if fence > 0 {
		about = append(about, attribute.Int64("redlockd.fence", int64(fence)))
	}
	return about
}

func (t *traced) Unlock(b *redlock.Batch, r redlock.UnlockRequest, done redlock.UnlockDone) {
	if o := t.tracer.begin("lock.release", t.tracer.leases.find(leaseID{r.DB, r.Key, r.Token}, true)); o != nil {
		r.Trace = o.about(r.DB, r.Key, nil)
		done = observed(o, done, o.decided("released"))
	}
	t.Locks.Unlock(b, r, done)
}

// Extend keeps the trace of a lease as long as the lease.
func (t *traced) Extend(b *redlock.Batch, r redlock.ExtendRequest, done redlock.ExtendDone) {
	by := t.tracer.leases.find(leaseID{r.DB, r.Key, r.Token}, false)
	if o := t.tracer.begin("lock.extend", by); o != nil {
		r.Trace = o.about(r.DB, r.Key, r.More, ttlAttribute(r.TTL))
		done = observed(o, done, func(g redlock.Grant) (string, attributes) {
			t.tracer.leases.noteGrant(&g, by)
			return granted, leaseAttributes(g.Validity(), 0)
		})
	}
	t.Locks.Extend(b, r, done)
}

// NextID may share the ballot that gives the ids with other requests: its votes are those
// of all of them.
func (t *traced) NextID(b *redlock.Batch, r redlock.IDRequest, done redlock.IDDone) {
	if o := t.tracer.begin("ids.next", trace.SpanContext{}); o != nil {
		r.Trace = o.about(r.DB, r.Name, nil, attribute.Int64("redlockd.count", r.Count))
		done = observed(o, done, func(first int64) (string, attributes) {
			return granted, attributes{attribute.Int64("redlockd.first", first)}
		})
	}
	t.IDs.NextID(b, r, done)
}

func (t *traced) Work(b *redlock.Batch, r redlock.WorkRequest, done redlock.WorkCompletion) (leave func()) {
	if o := t.tracer.begin("work.acquire", parentIn(r.Meta)); o != nil {
		r.Trace = o.about(r.DB, r.Key, nil,
			attribute.Int64("redlockd.timeout_ms", r.Timeout.Milliseconds()), attribute.Int64("redlockd.max", r.Max))
		id := leaseID{db: r.DB, key: r.Key}
		done = observed(o, done, func(w redlock.Work) (string, attributes) {
			about := attributes{attribute.Int64("redlockd.attempt", w.Attempt)}
			if w.State == redlock.WorkAcquired {
				about = append(about, leaseAttributes(w.Validity(), w.Fence)...)
				id.token = w.Token
				t.tracer.leases.note(id, o.span.SpanContext(), w.Validity())
			}
			return string(w.State), about
		})
	}
	return t.Works.Work(b, r, done)
}

// beginEnd traces the end or the extension of an attempt.
func (t *traced) beginEnd(name string, r *redlock.WorkEndRequest, last bool) *operation {
	o := t.tracer.begin(name, t.tracer.leases.find(leaseID{r.DB, r.Key, r.Token}, last))
	if o != nil {
		o.notHeld = "taken over"
		r.Trace = o.about(r.DB, r.Key, nil)
	}
	return o
}

func (t *traced) WorkDone(b *redlock.Batch, r redlock.WorkEndRequest, done redlock.WorkEndDone) {
	if o := t.beginEnd("work.done", &r, true); o != nil {
		done = observed(o, done, o.decided(granted))
	}
	t.Works.WorkDone(b, r, done)
}

func (t *traced) WorkFail(b *redlock.Batch, r redlock.WorkEndRequest, done redlock.WorkEndDone) {
	if o := t.beginEnd("work.fail", &r, true); o != nil {
		done = observed(o, done, o.decided(granted))
	}
	t.Works.WorkFail(b, r, done)
}

func (t *traced) WorkExtend(b *redlock.Batch, r redlock.WorkEndRequest, done redlock.WorkExtendDone) {
	if o := t.beginEnd("work.extend", &r, false); o != nil {
		done = observed(o, done, func(w redlock.Work) (string, attributes) { return granted, leaseAttributes(w.Validity(), 0) })
	}
	t.Works.WorkExtend(b, r, done)
}

var dropIn = attribute.Bool("redlockd.drop_in", true)

func (t *traced) Write(b *redlock.Batch, r redlock.WriteRequest, done redlock.WriteDone) {
	name := "lock.change"
	switch r.Effect {
	case redlock.WriteDeletes:
		name = "lock.release"
	case redlock.WriteExpires:
		name = "lock.extend"
	}
	if o := t.tracer.begin(name, t.tracer.leases.find(leaseID{r.DB, r.Key, r.Equal}, r.Effect == redlock.WriteDeletes)); o != nil {
		r.Trace = o.about(r.DB, r.Key, nil, dropIn)
		done = observed(o, done, o.decided(granted))
	}
	t.RedisCompat.Write(b, r, done)
}
