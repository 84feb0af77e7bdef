// What a master must still be told.
//
// A release whose answer did not come is sent again on the next connection,
// after the predecessor has been ended and before anything new is asked, until
// it is answered or the copy it is about has expired by itself.
package pool

import "slices"

// debtor sends one debt; any answer settles it.
type debtor struct {
	lane *lane
	debt Debt
}

var _ Operation = (*debtor)(nil)

func (d *debtor) Plan() Plan    { return Plan{} }
func (d *debtor) Propose(int64) {}

func (d *debtor) Command(m *Moment, c *Command) bool {
	if d.debt.Lapsed(m) {
		return false
	}
	c.Set(d.debt.Words(m)...)
	return true
}

// Answer settles the debt, or keeps it for the next heartbeat or connection.
func (d *debtor) Answer(a Answer) {
	if a.Reply.Err == nil {
		return
	}
	d.lane.group.mu.Lock()
	defer d.lane.group.mu.Unlock()
	d.lane.keepLocked(d.debt)
}

func (l *lane) oweLocked(d Debt) {
	if Broken(RuleOwed) {
		return
	}
	if l.conn == nil {
		l.keepLocked(d)
		return
	}
	l.appendLocked(entry{op: &debtor{l, d}})
	l.wakeLocked()
}

// keepLocked bounds the debts: what has expired goes first, then the oldest.
func (l *lane) keepLocked(d Debt) {
	if len(l.owed) >= l.group.pool.options.MaxOwed {
		now := l.group.now()
		l.owed = slices.DeleteFunc(l.owed, func(d Debt) bool { return d.Until < now })
	}
	if len(l.owed) >= l.group.pool.options.MaxOwed {
		l.owed = slices.Delete(l.owed, 0, len(l.owed)/4+1) // in one go: a copy per debt would be quadratic
		l.group.pool.options.Logger.Warn("too many releases wait for a master; the oldest are left to expire",
			"master", l.master.Name, "limit", l.group.pool.options.MaxOwed)
	}
	l.owed = append(l.owed, d)
}

// duesLocked are the debts that still matter, as operations.
func (l *lane) duesLocked() []entry {
	now := l.group.now()
	var out []entry
	for _, d := range l.owed {
		if d.Until > now {
			out = append(out, entry{op: &debtor{l, d}})
		}
	}
	l.owed = nil
	return out
}
