// Spans of clients that use the quorum as one Redis. How they take a lock is in
// locks.go; reads are not traced.

package tracing

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"redlockd/commands"
	"redlockd/redlock"
)

// RedisCompat traces the operations of next.
func (t *Tracer) RedisCompat(next commands.RedisCompat) commands.RedisCompat {
	if t == nil {
		return next
	}
	return &redisCompat{next, t}
}

type redisCompat struct {
	commands.RedisCompat
	tracer *Tracer
}

var dropIn = attribute.Bool("redlockd.drop_in", true)

func (p *redisCompat) Write(b *redlock.Batch, r redlock.WriteRequest, done redlock.WriteDone) {
	name := "lock.change"
	switch r.Effect {
	case redlock.WriteDeletes:
		name = "lock.release"
	case redlock.WriteExpires:
		name = "lock.extend"
	}
	o := p.tracer.begin(p.tracer.leases.find(leaseID{r.DB, r.Key, r.Equal}, r.Effect == redlock.WriteDeletes), name)
	if o == nil {
		p.RedisCompat.Write(b, r, done)
		return
	}
	o.about(append(keyed(r.DB, r.Key), dropIn)...)
	r.Trace = &o.votes
	p.RedisCompat.Write(b, r, func(did bool, err error) {
		word, failed := yesOr(did, outcomeGranted, outcomeNotHeld, err)
		o.finish(word, failed)
		done(did, err)
	})
}

func (p *redisCompat) RunScript(b *redlock.Batch, r redlock.ScriptRequest, done redlock.ScriptDone) {
	var by trace.SpanContext
	if r.Token != "" {
		by = p.tracer.leases.find(leaseID{r.DB, r.Keys[0], r.Token}, r.Effect == redlock.ScriptReleases)
	}
	o := p.tracer.begin(by, scriptName(r.Effect))
	if o == nil {
		p.RedisCompat.RunScript(b, r, done)
		return
	}
	o.about(append(keyed(r.DB, r.Keys[0], r.Keys[1:]...), dropIn)...)
	r.Trace = &o.votes
	p.RedisCompat.RunScript(b, r, func(outcome redlock.ScriptOutcome, err error) {
		word, failed := yesOr(outcome.Yes, outcomeGranted, outcomeNotHeld, err)
		o.finish(word, failed)
		done(outcome, err)
	})
}

func scriptName(effect redlock.ScriptEffect) string {
	switch effect {
	case redlock.ScriptReleases:
		return "lock.release"
	case redlock.ScriptForces:
		return "lock.change"
	}
	return "lock.extend"
}
