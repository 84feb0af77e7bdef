// Spans of locks: taken, prolonged and released.

package tracing

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"redlockd/commands"
	"redlockd/redlock"
)

// Locks traces the operations of next.
func (t *Tracer) Locks(next commands.Locks) commands.Locks {
	if t == nil {
		return next
	}
	return &locks{next, t}
}

type locks struct {
	commands.Locks
	tracer *Tracer
}

func (l *locks) Lock(b *redlock.Batch, r redlock.LockRequest, done redlock.LockDone) {
	l.Locks.Lock(b, r, l.tracer.acquire(&r, done))
}

func (l *locks) Wait(b *redlock.Batch, r redlock.LockRequest, done redlock.LockDone) (leave func()) {
	return l.Locks.Wait(b, r, l.tracer.acquire(&r, done))
}

// acquire traces a request for a lock.
func (t *Tracer) acquire(r *redlock.LockRequest, done redlock.LockDone) redlock.LockDone {
	o := t.begin(parentIn(r.Meta), "lock.acquire")
	if o == nil {
		return done
	}
	o.about(acquireAttributes(r)...)
	who := redlock.Requester{}
	if r.Requester != nil {
		who = *r.Requester
	}
	who.Trace, r.Requester = &o.votes, &who
	return func(grant redlock.Grant, err error) {
		var about []attribute.KeyValue
		if err == nil {
			about = granted(&grant, grant.Fence)
			for i, key := range grant.Keys() {
				t.leases.note(leaseID{grant.DB(), key, grant.TokenOf(i)}, o.span.SpanContext(), grant.Validity())
			}
		}
		word, failed := outcomeOf(err)
		o.finish(word, failed, about...)
		done(grant, err)
	}
}

func acquireAttributes(r *redlock.LockRequest) []attribute.KeyValue {
	about := append(keyed(r.DB, r.Key, r.More...),
		attribute.String("redlockd.mode", modeOf(r.Mode)),
		attribute.Int64("redlockd.ttl_ms", r.TTL.Milliseconds()))
	if r.Mode == redlock.Permits {
		about = append(about, attribute.Int("redlockd.limit", r.Limit))
	}
	if r.Wait > 0 {
		about = append(about, attribute.Int64("redlockd.wait_ms", r.Wait.Milliseconds()))
	}
	for name, set := range map[string]bool{"fair": r.Fair, "hold": r.Hold != nil, "drop_in": r.Valued || r.Script != nil} {
		if set {
			about = append(about, attribute.Bool("redlockd."+name, true))
		}
	}
	return about
}

func modeOf(m redlock.Mode) string {
	switch m {
	case redlock.Shared:
		return "shared"
	case redlock.Permits:
		return "permits"
	}
	return "exclusive"
}

// keyed returns the database and the keys of an operation.
func keyed(db int, key redlock.Key, more ...redlock.Key) []attribute.KeyValue {
	about := []attribute.KeyValue{attribute.Int("redlockd.database", db), attribute.String("redlockd.key", string(key))}
	if len(more) > 0 {
		all := []string{string(key)}
		for _, one := range more {
			all = append(all, string(one))
		}
		about = append(about, attribute.StringSlice("redlockd.keys", all))
	}
	return about
}

// granted returns what was given; an extension keeps its fence and reports none.
func granted(grant *redlock.Grant, fence redlock.Fence) []attribute.KeyValue {
	about := []attribute.KeyValue{attribute.Int64("redlockd.validity_ms", grant.Validity().Milliseconds())}
	if fence > 0 {
		about = append(about, attribute.Int64("redlockd.fence", int64(fence)))
	}
	return about
}

func (l *locks) Unlock(b *redlock.Batch, r redlock.UnlockRequest, done redlock.UnlockDone) {
	o := l.tracer.begin(l.tracer.leases.find(leaseID{r.DB, r.Key, r.Token}, true), "lock.release")
	if o != nil {
		o.about(keyed(r.DB, r.Key)...)
		r.Trace, done = &o.votes, o.released(done)
	}
	l.Locks.Unlock(b, r, done)
}

func (o *operation) released(done redlock.UnlockDone) redlock.UnlockDone {
	return func(released bool, err error) {
		word, failed := yesOr(released, "released", outcomeNotHeld, err)
		o.finish(word, failed)
		done(released, err)
	}
}

func (l *locks) Extend(b *redlock.Batch, r redlock.ExtendRequest, done redlock.ExtendDone) {
	id := leaseID{r.DB, r.Key, r.Token}
	by := l.tracer.leases.find(id, false)
	o := l.tracer.begin(by, "lock.extend")
	if o == nil {
		l.Locks.Extend(b, r, done)
		return
	}
	o.about(append(keyed(r.DB, r.Key, r.More...), attribute.Int64("redlockd.ttl_ms", r.TTL.Milliseconds()))...)
	r.Trace = &o.votes
	l.Locks.Extend(b, r, func(grant redlock.Grant, err error) {
		var about []attribute.KeyValue
		if err == nil {
			about = granted(&grant, 0)
			l.tracer.keepTrace(by, r.DB, append([]redlock.Key{r.Key}, r.More...), r.Token, &grant)
		}
		word, failed := outcomeOf(err)
		o.finish(word, failed, about...)
		done(grant, err)
	})
}

// keepTrace keeps the trace of a lease as long as the lease.
func (t *Tracer) keepTrace(by trace.SpanContext, db int, keys []redlock.Key, token redlock.Token, grant *redlock.Grant) {
	if !by.IsValid() {
		return
	}
	for _, key := range keys {
		t.leases.note(leaseID{db, key, token}, by, grant.Validity())
	}
}
