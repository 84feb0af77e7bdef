package engine

import (
	"errors"
	"slices"
	"testing"
	"time"

	"redlockd/pool"
	"redlockd/redlock/quorum"
)

// asked is a question that notes what its ballot calls.
type asked struct {
	Plain
	ballot Ballot
	calls  []string
	panics bool // in Read
}

func (q *asked) Props() pool.Props                             { return pool.Props{Bulk: "sha"} }
func (q *asked) Command(*pool.SendContext, *pool.Command) bool { return true }
func (q *asked) DecidedLocked(quorum.Result)                   { q.calls = append(q.calls, "locked") }
func (q *asked) Decided(quorum.Result)                         { q.calls = append(q.calls, "decided") }
func (q *asked) Late(pool.Answer, quorum.Result)               { q.calls = append(q.calls, "late") }
func (q *asked) Failed(pool.Answer)                            { q.calls = append(q.calls, "failed") }
func (q *asked) Undecided()                                    { q.calls = append(q.calls, "undecided") }

func (q *asked) Read(a pool.Answer) Reading {
	q.calls = append(q.calls, "read")
	switch {
	case q.panics:
		panic("a mistake of its own")
	case a.Reply.Err != nil:
		return Uncounted
	case IsOne(a.Reply):
		return Yes
	}
	return No
}

// newAsked is a question to three masters.
func newAsked() *asked {
	q := &asked{}
	q.ballot.Engine, q.ballot.question = &Engine{}, q
	q.ballot.Tally = quorum.Tally{N: 3, Quorum: 2}
	return q
}

func oneOf(lane int, n int64) pool.Answer {
	return pool.Answer{Lane: lane, Sent: true, Reply: pool.Reply{Kind: pool.ReplyInt, Int: n}, Seal: pool.Seal{Good: true}}
}

func TestBallot_IsDecidedOnceAndLaterAnswersAreLate(t *testing.T) {
	q := newAsked()
	for lane := range 3 {
		q.ballot.Answer(oneOf(lane, 1))
	}
	want := []string{"read", "undecided", "read", "locked", "decided", "late"}
	if !slices.Equal(q.calls, want) {
		t.Errorf("%q, want %q", q.calls, want)
	}
	if q.ballot.Tally.Yes != 2 || q.ballot.Missing.Answered() != 2 {
		t.Errorf("%+v: a late answer was counted", q.ballot.Tally)
	}
}

// The daemon recovers from a panic of what reads an answer. The other masters still decide.
func TestBallot_AReaderThatPanicsCostsItsOwnAnswer(t *testing.T) {
	q := newAsked()
	q.panics = true
	func() {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		q.ballot.Answer(oneOf(0, 1))
	}()
	q.panics = false
	decided := make(chan struct{})
	go func() {
		defer close(decided)
		q.ballot.Answer(oneOf(1, 1))
		q.ballot.Answer(oneOf(2, 1))
	}()
	select {
	case <-decided:
	case <-time.After(time.Minute):
		t.Fatal("the other lanes wait for the mutex")
	}
	if q.calls[len(q.calls)-1] != "decided" {
		t.Errorf("%q", q.calls)
	}
}

func TestBallot_AnErrorIsReportedBeforeItIsCountedAndAfterTheDecision(t *testing.T) {
	q := newAsked()
	failed := pool.Answer{Lane: 2, Sent: true, Reply: pool.Reply{Err: errors.New("cut")}}
	q.ballot.Answer(failed)
	q.ballot.Answer(oneOf(0, 1))
	q.ballot.Answer(oneOf(1, 1))
	q.ballot.Answer(failed)
	want := []string{"failed", "read", "undecided", "read", "undecided", "read", "locked", "decided", "failed", "late"}
	if !slices.Equal(q.calls, want) {
		t.Errorf("%q, want %q", q.calls, want)
	}
	if (q.ballot.Missing.Reason(2) == pool.Absence{}) {
		t.Error("no reason is noted for the answer that does not count")
	}
}

func TestBallot_AReasonOfTheQuestionsOwnStays(t *testing.T) {
	q := newAsked()
	own := pool.AbsentFor(errors.New("of its own"), time.Second)
	q.ballot.Missing.MarkMissing(1, own)
	q.ballot.Answer(pool.Answer{Lane: 1, Reply: pool.Reply{Err: errors.New("cut")}})
	if got := q.ballot.Missing.Reason(1); got != own {
		t.Errorf("%v, want %v", got, own)
	}
}

func TestBallot_AFenceThatDoesNotFitLeavesItUndecided(t *testing.T) {
	q, f := newAsked(), &quorum.Fencing{Rounds: 3} // no further seal is left
	q.ballot.fencing, q.ballot.Proposal = f, 5
	for lane, top := range []int64{5, 9, 10} {
		a := oneOf(lane, 1)
		a.Seal.IncarnationID, a.Seal.Old, a.Seal.Top = "one", top-1, top
		q.ballot.Answer(a)
	}
	want := []string{"read", "undecided", "read", "undecided", "read", "locked", "decided"}
	if !slices.Equal(q.calls, want) || q.ballot.result != quorum.Unknown {
		t.Errorf("%q, result %d, want %q and unknown with the last vote", q.calls, q.ballot.result, want)
	}
}

func TestBallot_WithoutATraceAllocatesNothingAndMayShareItsCommand(t *testing.T) {
	q, answer := newAsked(), oneOf(0, 1)
	q.calls = make([]string, 0, 1000)
	n := testing.AllocsPerRun(100, func() {
		q.ballot.Answer(answer)
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
	if q.ballot.Props().Bulk == "" {
		t.Error("a command that is not traced shares no command")
	}
	q.ballot.trace = &ballotTrace{}
	if q.ballot.Props().Bulk != "" {
		t.Error("a traced command shares its command, so its time is not known")
	}
}
