// vote: one master's answer to an acquire, in the terms of the ballot.

package lease

import (
	"redlockd/pool"
	"redlockd/redlock/quorum"
)

// vote is a master's answer in the terms of the ballot.
type vote struct {
	yes, no, wrongType bool
	hadCopy            bool // some of it was this token's before
	awaits             bool // after a refusal, what the other masters answer must be known first
	copy               copyState
}

// copyState is what is known about this ballot's copy on one master.
type copyState uint8

const (
	copyNone    copyState = iota // not sent, refused, or not answered yet
	copyMade                     // this ballot made it
	copyMaybe                    // sent, but no answer came
	copyEarlier                  // the token had it before: never undone
	copyChanged                  // the token had another one before, which this ballot changed
)

// isFresh reports that nothing of it was this token's before.
func (v *vote) isFresh() bool { return v.copy != copyEarlier && !v.hadCopy }

// laneCopies are what is known of a ballot's copies.
type laneCopies struct {
	answered uint16 // lanes, as bits: their answer is counted or learnt
	of       [quorum.MaxMasters]copyState
}

// note notes an answer. One that was learnt stays: that it was unknown may be told later.
func (l *laneCopies) note(lane int, c copyState) {
	if l.answered&(1<<lane) == 0 || c != copyMaybe {
		l.of[lane] = c
	}
}

// lanes are those that may have a copy, as bits: those that made one, gave an unclear answer, or have
// not answered yet.
func (l *laneCopies) lanes(n int) (lanes uint16) {
	for lane, c := range l.of[:n] {
		if c != copyNone || l.answered&(1<<lane) == 0 {
			lanes |= 1 << lane
		}
	}
	return lanes
}

// everywhere reports whether every lane is known to have a copy.
func (l *laneCopies) everywhere(n int) bool {
	for _, c := range l.of[:n] {
		if c == copyNone || c == copyMaybe {
			return false
		}
	}
	return true
}

// readVote reads the answer of SET NX and of scripts that answer a number: 1 = this ballot made
// a copy, above 1 = the token had one, 0 = another token has one, −1 = it is not a lock.
func readVote(answer pool.Answer) vote {
	r := answer.Reply
	switch {
	case r.Err != nil && answer.Sent:
		return vote{copy: copyMaybe}
	case !answer.Sent:
		return vote{}
	case r.Kind == pool.ReplyString, r.Kind == pool.ReplyInt && r.Int == 1:
		return vote{yes: true, copy: copyMade}
	case r.Kind == pool.ReplyInt && r.Int > 1:
		return vote{yes: true, copy: copyEarlier}
	case r.Kind == pool.ReplyInt && r.Int == -1:
		return vote{no: true, wrongType: true}
	}
	return vote{no: true}
}
