// This file acquires several keys, all or none.
//
// One script on each master checks all keys and then takes all of them. No master ever
// holds a part for anyone, and no request waits while it holds something, so the order of
// the keys does not matter. Each single key is held like any other: by a quorum that gave
// all of the keys in one step. Whatever excludes the holders of one key, exclusive or
// shared, therefore excludes holders of several, too.

package lease

import (
	"slices"
	"strconv"

	"redlockd/pool"
	"redlockd/redlock/engine"
)

// multiMode takes the ballot's key and its further keys.
type multiMode struct {
	queueCheck
	shared bool // as a reader of every key
}

var _ ballotMode = (*multiMode)(nil)

// multiSharedMode is that for readers.
type multiSharedMode struct {
	multiMode
	sharedFences
}

var _ fencingMode = (*multiSharedMode)(nil)

func (f *multiMode) command(a *lockBallot, m *pool.SendContext, c *pool.Command, end int64) {
	c.Set("EVALSHA", a.call.leases.engine.Scripts.Multi, strconv.Itoa(1+len(a.rest)), a.key)
	c.Args = append(c.Args, a.rest...)
	c.Args = append(c.Args, string(a.token), m.Decimal(end), engine.Flag(f.shared))
	f.precede(a, c)
}

func (f *multiMode) read(_ *lockBallot, answer pool.Answer) vote {
	if f.refuses(answer.Reply) {
		return vote{no: true}
	}
	n := engine.Numbers(answer.Reply)
	if answer.Reply.Err != nil || !answer.Sent || len(n) == 0 {
		return readVote(answer)
	}
	switch n[0] {
	case 1:
		made := slices.Contains(n[1:], 0)
		earlier := slices.Contains(n[1:], 1)
		if made {
			return vote{yes: true, hadCopy: earlier, copy: copyMade}
		}
		return vote{yes: true, copy: copyEarlier}
	case -1:
		return vote{no: true, wrongType: true}
	}
	return vote{no: true}
}

// takeBack undoes key by key. The script moved the expiry of each copy that the token
// already had, so the undo does not match it.
func (f *multiMode) takeBack(a *lockBallot, lane int, c copyState) {
	a.undo(lane, c, a.key)
	for _, key := range a.rest {
		a.undo(lane, c, key)
	}
}
