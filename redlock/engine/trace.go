// This file reports each master's vote on one request to a Trace.
//
// A request with a Trace costs an object for each of its ballots; a request without one
// costs a check of a nil pointer. Nothing is decided here: a Trace receives the answer as
// it came, and the ballot counts it for itself.

package engine

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

// ballotTrace is the trace of one ballot.
type ballotTrace struct {
	trace *Trace
	sent  [quorum.MaxMasters]time.Duration // of each lane, read only after it has answered
}

// VoteOf describes one answer to a command that was written at sent.
func VoteOf(p *pool.Pool, a pool.Answer, consent func(pool.Reply) bool, sent time.Duration) Vote {
	v := Vote{Master: p.Master(a.Lane).Name, Word: VoteUncounted}
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
