// This file reports each master's vote on one request to a Trace.
//
// A request with a Trace costs an object for each of its ballots; a request without one
// costs a check of a nil pointer. Nothing is decided here: a Trace receives the answer as
// it came, and the ballot counts it for itself.

package redlock

import (
	"time"

	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/quorum"
)

func (r *LockRequest) trace() *Trace {
	if r.Requester == nil {
		return nil
	}
	return r.Requester.Trace
}

// tracedOperation is an operation that reports its answers to a Trace, too.
type tracedOperation struct {
	pool.Operation
	trace *Trace
	pool  *pool.Pool
	sent  [quorum.MaxMasters]time.Duration // of each lane, read only after it has answered
}

// yesReader is implemented by operations whose answers differ from the usual form.
type yesReader interface{ isYes(pool.Reply) bool }

// traced reports op's answers to the trace. With a nil trace it returns op itself.
func (l *Locker) traced(t *Trace, op pool.Operation) pool.Operation {
	if t == nil {
		return op
	}
	t.OnBallot(l.engine.Pool.N())
	return &tracedOperation{Operation: op, trace: t, pool: l.engine.Pool}
}

// Props gives the operation a command of its own: the command is timed, and a traced
// operation has no argument for a bulk.
func (w *tracedOperation) Props() pool.Props {
	p := w.Operation.Props()
	p.Bulk = ""
	return p
}

// Command records when the command was written.
func (w *tracedOperation) Command(m *pool.SendContext, c *pool.Command) bool {
	w.sent[m.Lane] = m.Now
	return w.Operation.Command(m, c)
}

// Answer reports the vote first: the answer may be the one that decides.
func (w *tracedOperation) Answer(a pool.Answer) {
	consent := engine.IsYes
	if op, ok := w.Operation.(yesReader); ok {
		consent = op.isYes
	}
	w.trace.OnVote(engine.VoteOf(w.pool, a, consent, w.sent[a.Lane]))
	w.Operation.Answer(a)
}

func (a *ballot) isYes(r pool.Reply) bool {
	script := a.call.request.Script
	if script == nil {
		return engine.IsYes(r)
	}
	own, _ := script.splitAnswer(r)
	return script.Vote(own) == ScriptYes
}
