// Releases that a master has not acknowledged.
//
// A release whose answer did not come is sent again on the next connection,
// after the predecessor has been ended and before anything new is sent, until
// it is answered or the copy that it releases has expired by itself.

package pool

import "slices"

// releaseRetry sends one pending release; any answer but an error settles it.
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

// Answer settles the release, or keeps it for the next heartbeat or connection.
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

// keepPendingLocked bounds the pending releases: expired ones go first, then the oldest.
func (l *lane) keepLocked(d Debt) {
	if len(l.owed) >= l.group.pool.options.MaxOwed {
		now := l.group.now()
		l.owed = slices.DeleteFunc(l.owed, func(d Debt) bool { return d.Until < now })
	}
	if len(l.owed) >= l.group.pool.options.MaxOwed {
		l.owed = slices.Delete(l.owed, 0, len(l.owed)/4+1) // in one go: a copy per release would be quadratic
		l.group.pool.options.Logger.Warn("too many pending releases for a master; the oldest are left to expire",
			"master", l.master.Name, "limit", l.group.pool.options.MaxOwed)
	}
	l.owed = append(l.owed, d)
}

// takePendingLocked removes the pending releases and returns those that still matter, as operations.
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
