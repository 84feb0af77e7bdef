// Ballot: one question to all masters of a group, counted once.
//
// The path of a ballot: Ask queues it on every master's lane. Each lane writes the question's
// command and answers exactly once, from several goroutines. Every answer is traced, read and
// counted under the ballot's lock. The answer that decides is followed by the question's
// Decided, once and without the lock. Answers after that go to Late.

package engine

import (
	"sync"
	"time"

	"redlockd/pool"
	"redlockd/redlock/quorum"
)

// Question is what a ballot sends to each master, and what follows from the answers. A question
// embeds Plain, which has what most of them need of the second part.
type Question interface {
	// Props returns what the lanes must know about the operation; it is constant.
	Props() pool.Props
	// Command writes the command for one master, or reports false when its time is up.
	Command(m *pool.SendContext, c *pool.Command) bool
	// Read puts one answer into the ballot's terms. It is called with the ballot's lock held, in
	// the order of the answers, and never after the decision.
	Read(a pool.Answer) Reading
	// Decided continues after the decision. It is called once, without the lock; what Read has
	// noted does not change any more.
	Decided(r quorum.Result)

	// Decide evaluates the votes so far, with the lock held.
	Decide(t *quorum.Tally) quorum.Result
	// DecidedLocked runs before Decided, with the lock held: the next holder of a key needs
	// answers that come after this one.
	DecidedLocked(r quorum.Result)
	// Late receives an answer that comes after the decision, which was r.
	Late(a pool.Answer, r quorum.Result)
	// Learn receives what a master has answered after its answer was counted as unknown, or is about
	// to be; before the decision or after it.
	Learn(a pool.Answer)
	// Failed receives an answer with an error, before it is counted, also after the decision.
	Failed(a pool.Answer)
	// Undecided continues after an answer that decides nothing, without the lock.
	Undecided()
	// IsYes reports whether a trace shows the reply as a yes.
	IsYes(r pool.Reply) bool
	// BulkToken and AddToBulk are what Props.Bulk needs, see pool.BulkOperation.
	BulkToken() string
	AddToBulk(m *pool.SendContext, c *pool.BulkCall) bool
	// Owned reports whether by reports true for all keys that a grant of the question is about; one
	// that grants nothing names none.
	Owned(by func(Key) bool) bool
}

// Plain is the second part of a Question that counts a majority and nothing else.
type Plain struct{}

func (Plain) Decide(t *quorum.Tally) quorum.Result { return t.Result() }
func (Plain) DecidedLocked(quorum.Result)          {}
func (Plain) Late(pool.Answer, quorum.Result)      {}
func (Plain) Learn(pool.Answer)                    {}
func (Plain) Failed(pool.Answer)                   {}
func (Plain) Undecided()                           {}
func (Plain) IsYes(r pool.Reply) bool              { return IsYes(r) }
func (Plain) BulkToken() string                    { return "" }
func (Plain) Owned(func(Key) bool) bool            { return true }

func (Plain) AddToBulk(*pool.SendContext, *pool.BulkCall) bool { return false }

// Reading is one master's answer in the ballot's terms.
type Reading uint8

const (
	Uncounted Reading = iota // it proves nothing; see Ballot.Lacks
	Neither                  // it counts as an answer, and is neither yes nor no
	No
	WrongType // a no: the master holds something else at the key
	Yes
)

// Ballot puts one question to all masters. It is part of its question's struct, so a ballot
// costs no allocation of its own.
type Ballot struct {
	Engine   *Engine
	Group    *pool.Group
	question Question
	trace    *ballotTrace // nil: the ballot is not traced

	mu        sync.Mutex
	Tally     quorum.Tally // after the decision it is read without the lock, as Missing
	Missing   Missing
	WrongType int   // masters that answered WrongType
	Proposal  int64 // the fence that the pool proposed
	Fence     int64 // of a fenced ballot that is granted
	result    quorum.Result
	moved     bool   // a quorum said yes, but a key has left the group
	version   uint32 // of the map when the ballot began
	fencing   *quorum.Fencing
}

var (
	_ pool.BulkOperation = (*Ballot)(nil)
	_ pool.Learner       = (*Ballot)(nil)
)

// Ask queues the question on every master of a group, at once or with its read batch.
func (b *Ballot) Ask(e *Engine, batch *Batch, g *pool.Group, t *Trace, q Question) {
	b.Prepare(e, g, q)
	if t != nil {
		t.OnBallot(b.Tally.N)
		b.trace = &ballotTrace{trace: t}
	}
	e.Submit(batch, g, b)
}

// Prepare is Ask without sending anything.
func (b *Ballot) Prepare(e *Engine, g *pool.Group, q Question) {
	b.Engine, b.Group, b.question = e, g, q
	if o := e.Ownership; o != nil {
		b.version = o.Version()
	}
	b.Tally.N, b.Tally.Quorum = e.Pool.N(), e.Pool.Quorum()
}

// AskFenced is Ask for a question whose yes votes give a lock: a quorum of them is granted with a
// fence that lies in the intervals of a quorum, with further seals if necessary.
func (b *Ballot) AskFenced(e *Engine, batch *Batch, g *pool.Group, t *Trace, f *quorum.Fencing, q Question) {
	b.fencing = f
	b.Ask(e, batch, g, t, q)
}

// Props gives a traced operation a command of its own, because the command is timed.
func (b *Ballot) Props() pool.Props {
	p := b.question.Props()
	if b.trace != nil {
		p.Bulk = ""
	}
	return p
}

// Propose notes the fence and the number of masters that will answer.
func (b *Ballot) Propose(fence int64, masters int) {
	b.Proposal = fence
	b.Tally.N, b.Tally.Quorum = masters, pool.Quorum(masters)
}

// BulkToken is the question's.
func (b *Ballot) BulkToken() string { return b.question.BulkToken() }

// AddToBulk adds the question to a call of the script that handles several operations.
func (b *Ballot) AddToBulk(m *pool.SendContext, c *pool.BulkCall) bool {
	return b.question.AddToBulk(m, c)
}

// Command writes the question's command for one master.
func (b *Ballot) Command(m *pool.SendContext, c *pool.Command) bool {
	if b.trace != nil {
		b.trace.sent[m.Lane] = m.Now
	}
	return b.question.Command(m, c)
}

// Answer counts one master.
func (b *Ballot) Answer(a pool.Answer) {
	if t := b.trace; t != nil { // first: the answer may be the one that decides
		t.trace.OnVote(VoteOf(b.Engine.Pool, a, b.question.IsYes, t.sent[a.Lane]))
	}
	if a.Reply.Err != nil {
		b.question.Failed(a)
	}
	if r, raise, late := b.count(a); late {
		b.question.Late(a, r)
	} else {
		b.follow(r, raise)
	}
}

// Learn passes a late answer to the question.
func (b *Ballot) Learn(a pool.Answer) { b.question.Learn(a) }

// count counts an answer, unless the ballot is decided. A reader that panics, such as that of a
// library's script, costs its own answer: the other lanes need the mutex.
func (b *Ballot) count(a pool.Answer) (r quorum.Result, raise []int, late bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.Over() {
		return b.result, nil, true
	}
	b.countLocked(a, b.question.Read(a))
	r, raise = b.decideLocked()
	return r, raise, false
}

// onRaised takes the answer of a further seal for the fence.
func (b *Ballot) onRaised(lane int, seal pool.Seal) {
	b.Reconsider(func() bool {
		b.fencing.Raised(IntervalOf(lane, seal), seal.Good)
		return true
	})
}

// follow continues after an answer, without the lock.
func (b *Ballot) follow(r quorum.Result, raise []int) {
	switch {
	case len(raise) > 0:
		RaiseRegisters(b.Group, 0, raise, b.onRaised)
	case r != quorum.Undecided:
		b.question.Decided(r)
	default:
		b.question.Undecided()
	}
}

// Reconsider evaluates the votes again after a change that is not a vote. change is called with
// the lock held and reports whether to evaluate. Nothing follows a decision.
func (b *Ballot) Reconsider(change func() bool) {
	b.mu.Lock()
	if !change() || b.Over() {
		b.mu.Unlock()
		return
	}
	r, raise := b.decideLocked()
	b.mu.Unlock()
	b.follow(r, raise)
}

// Over reports whether the ballot is decided; it is called with the lock held.
func (b *Ballot) Over() bool { return b.result != quorum.Undecided }

func (b *Ballot) countLocked(a pool.Answer, read Reading) {
	switch read {
	case Yes:
		b.Tally.Yes++
		if b.fencing != nil {
			b.fencing.Voted(IntervalOf(a.Lane, a.Seal))
		}
	case WrongType:
		b.WrongType++
		b.Tally.No++
	case No:
		b.Tally.No++
	case Neither:
		b.Tally.Uncounted++
	default:
		b.Tally.Uncounted++
		if (b.Missing.Reason(a.Lane) == pool.Absence{}) {
			b.Missing.MarkMissing(a.Lane, b.Engine.Pool.Absence(&a))
		}
		return
	}
	b.Missing.MarkCounted(a.Lane)
}

// decideLocked evaluates the votes so far. raise are the lanes whose register must be raised
// before a fence fits.
func (b *Ballot) decideLocked() (r quorum.Result, raise []int) {
	r = b.question.Decide(&b.Tally)
	if r == quorum.Granted && b.fencing != nil {
		var impossible bool
		b.fencing.Proposal = b.Proposal
		b.Fence, raise, impossible = b.fencing.Choose(b.Tally.Quorum, b.Tally.Pending())
		switch {
		case impossible:
			r = quorum.Unknown
		case b.Fence == 0:
			return quorum.Undecided, raise
		}
	}
	if r == quorum.Granted && b.Engine.Ownership != nil {
		if _, b.moved = b.movedKey(); b.moved {
			r = quorum.Unknown
		}
	}
	if r != quorum.Undecided {
		b.result = r
		b.question.DecidedLocked(r)
	}
	return r, nil
}

// Lacks notes a reason of the question's own why the answer that is being read does not count.
func (b *Ballot) Lacks(lane int, reason error, span time.Duration) Reading {
	b.Missing.MarkMissing(lane, pool.AbsentFor(reason, span))
	return Uncounted
}

// Lock and Unlock guard what a question notes from answers.
func (b *Ballot) Lock()   { b.mu.Lock() }
func (b *Ballot) Unlock() { b.mu.Unlock() }

// MostlyWrongType reports whether most masters have something else at the key.
func (b *Ballot) MostlyWrongType() bool { return b.WrongType > b.Tally.N-b.Tally.Quorum }

// movedKey is one of the question's keys that the group has not had since the ballot began.
func (b *Ballot) movedKey() (key Key, moved bool) {
	o := b.Engine.Ownership
	b.question.Owned(func(k Key) bool {
		since := o.Since(k)
		if since == 0 || since > b.version {
			key, moved = k, true
		}
		return !moved
	})
	return key, moved
}

// Moved reports whether the ballot is undecided because a key has left the group.
func (b *Ballot) Moved() bool { return b.moved }

// NoQuorum is the error that names each master whose answer the ballot missed, and why.
func (b *Ballot) NoQuorum(note string) *NoQuorum {
	if b.moved {
		key, _ := b.movedKey()
		return &NoQuorum{Moving: b.Engine.Ownership.Moving(key)}
	}
	return b.Engine.NoQuorum(&b.Missing, note)
}
