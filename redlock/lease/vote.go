// vote: one master's answer to an acquire, in the terms of the ballot.

package lease

import "redlockd/pool"

// vote is a master's answer in the terms of the ballot.
type vote struct {
	yes, no, wrongType bool
	hadCopy            bool // some of it was this token's before
	reader             bool // the token was a reader's before
	copy               copyState
}

// copyState is what is known about this ballot's copy on one master.
type copyState uint8

const (
	copyNone     copyState = iota // not sent, refused, or not answered yet
	copyMade                      // this ballot made it
	copyMaybe                     // sent, but no answer came
	copyEarlier                   // the token had it before: never undone
	copyUpgraded                  // the token was a reader before and is now the writer
)

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
