// This file reports each master's vote on one request to a Trace.
//
// A request with a Trace costs an object for each of its ballots; a request without one
// costs a check of a nil pointer. Nothing is decided here: a Trace receives the answer as
// it came, and the ballot counts it for itself.

package redlock

import (
	"time"

	"redlockd/pool"
	"redlockd/redlock/quorum"
)

// Trace follows one request. Its functions are called from any goroutine, also after the
// outcome: masters that are not needed for it answer all the same. They must not block.
type Trace struct {
	// OnBallot announces a number of votes; each of them follows.
	OnBallot func(votes int)
	OnVote   func(Vote)
}

// Vote is one master's vote, for people.
type Vote struct {
	Master string
	Word   string        // VoteYes, VoteNo or VoteUncounted
	Took   time.Duration // from the writing of the command to the answer; 0 = nothing was sent
	Cause  string        // of VoteUncounted
}

// Words of a Vote.
const (
	VoteYes       = "yes"    // a yes that counts
	VoteNo        = "no"     // a no that counts
	VoteUncounted = "silent" // neither: cut, late, void, quarantined, or not asked
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
	t.OnBallot(l.pool.N())
	return &tracedOperation{Operation: op, trace: t, pool: l.pool}
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
	consent := isYes
	if op, ok := w.Operation.(yesReader); ok {
		consent = op.isYes
	}
	w.trace.OnVote(voteOf(w.pool, a, consent, w.sent[a.Lane]))
	w.Operation.Answer(a)
}

func voteOf(p *pool.Pool, a pool.Answer, consent func(pool.Reply) bool, sent time.Duration) Vote {
	v := Vote{Master: p.Options().Masters[a.Lane].Name, Word: VoteUncounted}
	cause := a.Reply.Err
	if cause == nil {
		cause = a.Seal.Err
	}
	if a.Sent {
		v.Took = p.Clock().Now() - sent
	} else {
		v.Cause = "not asked"
	}
	switch {
	case cause != nil && !a.Sent:
		v.Cause += ": " + cause.Error()
	case cause != nil:
		v.Cause = cause.Error()
	case !a.Sent:
	case !consent(a.Reply):
		v.Word = VoteNo
	case a.Seal.Quarantined:
		v.Cause = "quarantined: it may have forgotten"
	default:
		v.Word = VoteYes
	}
	return v
}

// isYes reads the answers of commands and scripts that take, prolong or release: a string
// or a positive number, alone or as the first of several.
func isYes(r pool.Reply) bool {
	if r.Kind == pool.ReplyArray {
		if len(r.Items) == 0 {
			return false
		}
		n, _ := r.Items[0].Number()
		return n == 1
	}
	return r.Kind == pool.ReplyString || r.Kind == pool.ReplyInt && r.Int > 0
}

// isOne reads the answers of which 1 alone is yes.
func isOne(r pool.Reply) bool { return r.Kind == pool.ReplyInt && r.Int == 1 }

func (w *workFinish) isYes(r pool.Reply) bool    { return isOne(r) }
func (w *workExtension) isYes(r pool.Reply) bool { return isOne(r) }

func (a *ballot) isYes(r pool.Reply) bool {
	script := a.call.request.Script
	if script == nil {
		return isYes(r)
	}
	own, _ := script.splitAnswer(r)
	return script.Vote(own) == ScriptYes
}

func (s *scriptBallot) isYes(r pool.Reply) bool {
	if s.script == nil {
		return isOne(r)
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
		v := voteOf(r.counter.locker.pool, a, isYes, r.trace.sent[a.Lane])
		for _, t := range r.trace.traces {
			t.OnVote(v)
		}
	}
}
