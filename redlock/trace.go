// Who is told what each master says to one request?
//
// A request that carries a Trace costs an object for each of its ballots; one
// without costs a look at a nil pointer. Nothing is decided here: what is heard
// is the answer as it came, and the ballot behind it judges for itself.
package redlock

import (
	"time"

	"redlockd/pool"
)

// Trace follows one request. Its functions are called from any goroutine, also
// behind the outcome: masters that are not needed for it answer all the same.
// They must not block.
type Trace struct {
	// Asked announces so many votes; each of them comes.
	Asked func(votes int)
	Voted func(Vote)
}

// Vote is what one master said, for people.
type Vote struct {
	Master string
	Word   string        // VoteYes, VoteNo or VoteSilent
	Took   time.Duration // from the writing of the question to the answer; 0 = it was not asked
	Cause  string        // of VoteSilent
}

// Words of a Vote.
const (
	VoteYes    = "yes"    // a consent that counts
	VoteNo     = "no"     // a refusal that counts
	VoteSilent = "silent" // neither: cut, late, void, young, or not asked
)

func (r *LockRequest) trace() *Trace {
	if r.Who == nil {
		return nil
	}
	return r.Who.Trace
}

// watched is an operation whose answers somebody else hears, too.
type watched struct {
	pool.Operation
	trace *Trace
	pool  *pool.Pool
	sent  [maxMasters]time.Duration // of each lane, read only after it has answered
}

// consenting is an operation whose answers do not read as those of most do.
type consenting interface{ consent(pool.Reply) bool }

// watch has the trace hear what op is answered; a nil trace hears nothing and
// op stays what it is.
func (l *Locker) watch(t *Trace, op pool.Operation) pool.Operation {
	if t == nil {
		return op
	}
	t.Asked(l.pool.N())
	return &watched{Operation: op, trace: t, pool: l.pool}
}

// Plan has it asked by a command of its own: that one is timed, and a watched
// operation has no word for a bulk.
func (w *watched) Plan() pool.Plan {
	p := w.Operation.Plan()
	p.Bulk = ""
	return p
}

// Command notes when the question was written.
func (w *watched) Command(m *pool.Moment, c *pool.Command) bool {
	w.sent[m.Lane] = m.Now
	return w.Operation.Command(m, c)
}

// Answer tells the vote first: the answer may be the one that decides.
func (w *watched) Answer(a pool.Answer) {
	consent := consents
	if op, ok := w.Operation.(consenting); ok {
		consent = op.consent
	}
	w.trace.Voted(voteOf(w.pool, a, consent, w.sent[a.Lane]))
	w.Operation.Answer(a)
}

func voteOf(p *pool.Pool, a pool.Answer, consent func(pool.Reply) bool, sent time.Duration) Vote {
	v := Vote{Master: p.Options().Masters[a.Lane].Name, Word: VoteSilent}
	cause := a.Reply.Err
	if cause == nil {
		cause = a.Seal.Err
	}
	if a.Asked {
		v.Took = p.Clock().Now() - sent
	} else {
		v.Cause = "not asked"
	}
	switch {
	case cause != nil && !a.Asked:
		v.Cause += ": " + cause.Error()
	case cause != nil:
		v.Cause = cause.Error()
	case !a.Asked:
	case !consent(a.Reply):
		v.Word = VoteNo
	case a.Seal.Young:
		v.Cause = "quarantined: it may have forgotten"
	default:
		v.Word = VoteYes
	}
	return v
}

// consents reads the answers of commands and scripts that take, prolong or
// release: a string or a positive number, alone or as the first of several.
func consents(r pool.Reply) bool {
	if r.Kind == pool.ReplyArray {
		if len(r.Items) == 0 {
			return false
		}
		n, _ := r.Items[0].Number()
		return n == 1
	}
	return r.Kind == pool.ReplyString || r.Kind == pool.ReplyInt && r.Int > 0
}

// isOne reads those for which 1 alone is yes.
func isOne(r pool.Reply) bool { return r.Kind == pool.ReplyInt && r.Int == 1 }

func (w *workEnd) consent(r pool.Reply) bool       { return isOne(r) }
func (w *workExtension) consent(r pool.Reply) bool { return isOne(r) }

func (a *attempt) consent(r pool.Reply) bool {
	script := a.call.request.Script
	if script == nil {
		return consents(r)
	}
	own, _ := script.answer(r)
	return script.Vote(own) == ScriptYes
}

func (s *survey) consent(r pool.Reply) bool {
	if s.script == nil {
		return isOne(r)
	}
	own, _ := s.script.answer(r)
	return s.script.Vote(own) == ScriptYes
}

// roundTrace is for a round of ids that serves requests with a Trace: its votes
// are those of all of them.
type roundTrace struct {
	hear []*Trace
	sent [maxMasters]time.Duration
}

// announceLocked is called when the round's requests are known. Masters that
// have answered before could not be asked.
func (r *idRound) announceLocked() {
	for i := range r.callers {
		t := r.callers[i].trace
		if t == nil {
			continue
		}
		if r.trace == nil {
			r.trace = &roundTrace{}
		}
		r.trace.hear = append(r.trace.hear, t)
		t.Asked(r.tally.n)
	}
	for lane := range r.tally.n {
		if r.early&(1<<lane) != 0 {
			r.tellLocked(pool.Answer{Lane: lane})
		}
	}
}

// tellLocked tells one vote.
func (r *idRound) tellLocked(a pool.Answer) {
	switch {
	case !r.frozen:
		r.early |= 1 << a.Lane
	case r.trace != nil:
		v := voteOf(r.counter.locker.pool, a, consents, r.trace.sent[a.Lane])
		for _, t := range r.trace.hear {
			t.Voted(v)
		}
	}
}
