// This file acquires an exclusive lock with the caller's token, which may already hold
// the key.
//
// If it holds the key as the only reader, it becomes the writer in place. A ballot may
// turn the reader into the writer on a minority of masters. It must not lose the read
// lease by that: its undo is no release, but makes the writer the reader that it was.

package lease

import (
	"strconv"

	"redlockd/pool"
	"redlockd/redlock/quorum"
)

// tokenMode is an exclusive lock with the caller's token.
type tokenMode struct {
	queueCheck
	scores [quorum.MaxMasters]int64 // expiry of the reader that was upgraded on a master
}

var _ ballotMode = (*tokenMode)(nil)

func (f *tokenMode) command(a *lockBallot, m *pool.SendContext, c *pool.Command, end int64) {
	c.Set("EVALSHA", a.call.leases.engine.Scripts.Acquire, "1", a.key, string(a.token), m.Decimal(end))
	f.precede(a, c)
}

func (f *tokenMode) read(_ *lockBallot, answer pool.Answer) vote {
	r := answer.Reply
	switch {
	case f.refuses(r):
		return vote{no: true}
	case r.Kind != pool.ReplyArray || !answer.Sent:
		return readVote(answer)
	case len(r.Items) == 2 && r.Items[0].Int == 1:
		f.scores[answer.Lane] = r.Items[1].Int
		return vote{yes: true, hadCopy: true, awaits: true, copy: copyChanged}
	}
	return vote{no: true, awaits: len(r.Items) == 3 && r.Items[2].Int == 1}
}

// takeBack makes the writer a reader again, for as long as the longest read lease can last.
func (f *tokenMode) takeBack(a *lockBallot, lane int, c copyState) {
	if c != copyChanged {
		a.undo(lane, c, a.key)
		return
	}
	l := a.call.leases
	a.sendUndo(lane, c, a.key, a.token, l.engine.MaxTTL, "EVALSHA", l.engine.Scripts.Unupgrade, "1", a.key,
		string(a.token), strconv.FormatInt(a.ends[lane], 10), strconv.FormatInt(f.scores[lane], 10))
}
