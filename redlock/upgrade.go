// This file acquires an exclusive lock with the caller's token, which may already hold
// the key.
//
// If it holds the key as the only reader, it becomes the writer in place. A ballot may
// turn the reader into the writer on a minority of masters. It must not lose the read
// lease by that: its undo is no release, but makes the writer the reader that it was.

package redlock

import (
	"strconv"

	"redlockd/pool"
)

// tokenMode is an exclusive lock with the caller's token.
type named struct {
	scores [maxMasters]int64 // expiry of the reader that was upgraded on a master
}

var _ form = (*named)(nil)

func (f *named) command(a *attempt, m *pool.Moment, c *pool.Command, end int64) {
	c.Set("EVALSHA", a.call.locker.script.acquire, "1", a.key, string(a.token), m.Decimal(end))
}

func (f *named) read(_ *attempt, answer pool.Answer) said {
	r := answer.Reply
	switch {
	case r.Kind != pool.ReplyArray || !answer.Asked:
		return readTaken(answer)
	case len(r.Items) == 2 && r.Items[0].Int == 1:
		f.scores[answer.Lane] = r.Items[1].Int
		return said{took: true, repeats: true, copy: copyUpgraded}
	}
	return said{refused: true}
}

// takeBack also goes to masters that did not report what they did: the script finds out.
// It goes on for as long as the longest read lease can last.
func (f *named) takeBack(a *attempt, lane int, c copyState) {
	switch {
	case c != copyMade && c != copyUpgraded && c != copyMaybe,
		c == copyMaybe && pool.Broken(pool.RuleUndoAll):
		return
	case pool.Broken(pool.RuleUndoGuard), pool.Broken(pool.RuleUpgradeUndo) && c == copyUpgraded:
		a.undoWithin(lane, c, a.key, 0, 2*a.ends[lane])
		return
	}
	l, score := a.call.locker, ""
	if c == copyUpgraded {
		score = strconv.FormatInt(f.scores[lane], 10)
	}
	l.counts.undone.Add(1)
	a.call.group.Push(lane, &repeated{group: a.call.group, key: a.key, debt: pool.Debt{
		Args: []string{"EVALSHA", l.script.unupgrade, "1", a.key, string(a.token),
			strconv.FormatInt(a.ends[lane], 10), score},
		Until: a.start + l.maxTTL + 4*l.late, Met: a.onlyOn(lane, c, a.token),
	}})
}

func (f *named) after(a *attempt, v verdict) (form, error) { return sameAgain(&named{}, a, v) }

// blockedBy reports whether a lease of the awaited key blocks the waiter. A lease of its
// own token does not. A reader that requests the write lock waits for the other readers;
// if one of them requests it, too, neither will ever release.
func (s *waiters) inTheWay(w *waiter, l Lease) bool {
	known, _ := s.locker.leases.find(lockID{l.DB, l.Key, l.Token})
	together := w.request.Mode != Exclusive && w.request.Mode == known.mode
	return l.Token != w.request.Token && !together
}
