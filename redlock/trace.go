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

func (w *workFinish) isYes(r pool.Reply) bool    { return engine.IsOne(r) }
func (w *workExtension) isYes(r pool.Reply) bool { return engine.IsOne(r) }

func (a *ballot) isYes(r pool.Reply) bool {
	script := a.call.request.Script
	if script == nil {
		return engine.IsYes(r)
	}
	own, _ := script.splitAnswer(r)
	return script.Vote(own) == ScriptYes
}

func (s *scriptBallot) isYes(r pool.Reply) bool {
	if s.script == nil {
		return engine.IsOne(r)
	}
	own, _ := s.script.splitAnswer(r)
	return s.script.Vote(own) == ScriptYes
}

// roundTrace traces a round of ids that serves requests with a Trace. Its votes are those
// of all of them.
type roundTrace struct {
	traces []*Trace
	sent   [quorum.MaxMasters]time.Duration
}

// announceLocked is called when the round's requests are known. Masters that have
// answered before did not receive the round's command.
func (r *idRound) announceLocked() {
	for i := range r.callers {
		t := r.callers[i].trace
		if t == nil {
			continue
		}
		if r.trace == nil {
			r.trace = &roundTrace{}
		}
		r.trace.traces = append(r.trace.traces, t)
		t.OnBallot(r.tally.N)
	}
	for lane := range r.tally.N {
		if r.early&(1<<lane) != 0 {
			r.reportLocked(pool.Answer{Lane: lane})
		}
	}
}

// reportLocked reports one vote.
func (r *idRound) reportLocked(a pool.Answer) {
	switch {
	case !r.frozen:
		r.early |= 1 << a.Lane
	case r.trace != nil:
		v := engine.VoteOf(r.counter.locker.engine.Pool, a, engine.IsYes, r.trace.sent[a.Lane])
		for _, t := range r.trace.traces {
			t.OnVote(v)
		}
	}
}
