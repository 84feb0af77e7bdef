// An exclusive lock with the caller's token, which may hold the key already.
//
// If it holds it as a reader and no other reader is there, it becomes the writer
// in place. An attempt that turned the reader into the writer on a minority of
// masters must not cost it the read lease: its undo is no release, it makes the
// writer the reader again that it was.
package redlock

import (
	"strconv"

	"redlockd/pool"
)

type named struct {
	scores [maxMasters]int64 // when the reader ended that was upgraded on a master
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

// takeBack tells masters that did not say what they did, too: the script finds
// out. It goes on for as long as the longest read lease can last.
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

// inTheWay tells whether a lease of the key that is waited for keeps the waiter
// from it. Its own token's does not: a reader who wants to be the writer waits
// for the others, and if one of them wants that too, neither will ever go.
func (s *waiters) inTheWay(w *waiter, l Lease) bool {
	known, _ := s.locker.leases.find(lockID{l.DB, l.Key, l.Token})
	together := w.request.Mode != Exclusive && w.request.Mode == known.mode
	return l.Token != w.request.Token && !together
}
