// lockMode: what a ballot writes on a master, and how it reads the answer.

package lease

import (
	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/quorum"
	"redlockd/redlock/scripts"
)

// lockMode is one way to hold a key: exclusive, as a reader, with one of several permits, over
// several keys. The ballot is the same for all of them; its mode writes the command and reads
// the answer. command and read are called for each master from its lane, the other methods
// after the ballot is decided.
type lockMode interface {
	// command requests a copy from one master that lasts until end, ms of the master's clock.
	command(a *lockBallot, m *pool.SendContext, c *pool.Command, end int64)
	// read turns one master's answer into a vote. It is called with the ballot's lock held, in
	// the order of the answers.
	read(a *lockBallot, answer pool.Answer) vote
	// takeBack returns what this ballot made, or may have made, on one master.
	takeBack(a *lockBallot, lane int, c copyState)
	// after decides what follows a ballot that was refused or split: the error for the caller,
	// or another ballot, at once or after a pause. A nil mode is that of the request again.
	after(a *lockBallot, v quorum.Result) (lockMode, error)
}

// splitMode is a lockMode whose ballot may end as split before all masters that could decide it have
// answered.
type splitMode interface{ splits(a *lockBallot) bool }

// grantedMode is a lockMode that has more to do once its ballot was granted.
type grantedMode interface{ granted(a *lockBallot) }

// bulkMode is a lockMode of which several acquires in a flush can be one call of a script.
type bulkMode interface {
	bulkScript(s *scripts.Set) string // its SHA1
	// addToBulk adds the arguments, and the keys unless the ballot has those of a queue.
	addToBulk(a *lockBallot, m *pool.SendContext, c *pool.BulkCall, end int64)
}

// sameAgain is a part of modes that send the same request again after a split.
type sameAgain struct{}

func (sameAgain) after(a *lockBallot, v quorum.Result) (lockMode, error) {
	switch {
	case v == quorum.Split:
		return nil, nil
	case a.ballot.MostlyWrongType():
		return nil, engine.ErrWrongType
	}
	return nil, engine.ErrHeld
}
