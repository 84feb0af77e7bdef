// Releases that a master has not acknowledged.
//
// A release whose answer did not come is sent again on the next connection,
// after the predecessor has been ended and before anything new is sent, until
// it is answered or the copy that it releases has expired by itself.

package pool

import (
	"slices"
	"time"
)

// PendingRelease is a command that a master still has to receive although it did not
// answer: it is sent again, usually on the next connection, until it is answered.
type PendingRelease struct {
	Args  []string
	Until time.Duration // on the pool's Clock; afterwards the command is pointless
	// ArgsAt returns the command, instead of Args, where it carries a time. Its argument
	// is what the master's clock showed at Since, in µs. When the release becomes pending
	// no clock may be known yet, in a daemon that has reached no master since its start.
	ArgsAt func(then int64) []string
	Since  time.Duration // on the pool's Clock
	// ConnectedAt is the connection (SendContext.ConnectedAt) on which alone it may be
	// sent: after the command that it undoes. 0 = any.
	ConnectedAt time.Duration
}

// CommandArgs returns the command for one master.
func (d *PendingRelease) CommandArgs(m *SendContext) []string {
	if d.ArgsAt == nil {
		return d.Args
	}
	return d.ArgsAt(m.Time - (m.Now - d.Since).Microseconds())
}

// Write writes the command for one master, unless it need not, or must not, be sent there.
func (d *PendingRelease) Write(m *SendContext, c *Command) bool {
	if m.Now > d.Until || d.ConnectedAt != 0 && d.ConnectedAt != m.ConnectedAt {
		return false
	}
	c.Set(d.CommandArgs(m)...)
	return true
}

// releaseRetry sends one pending release; any answer but an error settles it.
type releaseRetry struct {
	lane    *lane
	release PendingRelease
}

var _ Operation = (*releaseRetry)(nil)

func (d *releaseRetry) Props() Props       { return Props{} }
func (d *releaseRetry) Propose(int64, int) {}

func (d *releaseRetry) Command(m *SendContext, c *Command) bool { return d.release.Write(m, c) }

// Answer settles the release, or keeps it for the next heartbeat or connection.
func (d *releaseRetry) Answer(a Answer) {
	if a.Reply.Err == nil {
		return
	}
	d.lane.group.mu.Lock()
	defer d.lane.group.mu.Unlock()
	d.lane.keepPendingLocked(d.release)
}

func (l *lane) retryLocked(d PendingRelease) {
	if l.conn == nil {
		l.keepPendingLocked(d)
		return
	}
	l.appendLocked(queueEntry{op: &releaseRetry{l, d}})
	l.wakeLocked()
}

// keepPendingLocked bounds the pending releases: expired ones go first, then the oldest.
func (l *lane) keepPendingLocked(d PendingRelease) {
	if len(l.pending) >= l.group.pool.options.MaxPendingReleases {
		now := l.group.now()
		l.pending = slices.DeleteFunc(l.pending, func(d PendingRelease) bool { return d.Until < now })
	}
	if len(l.pending) >= l.group.pool.options.MaxPendingReleases {
		l.pending = slices.Delete(l.pending, 0, len(l.pending)/4+1) // in one go: a copy per release would be quadratic
		l.group.pool.options.Logger.Warn("too many pending releases for a master; the oldest are left to expire",
			"master", l.master.Name, "limit", l.group.pool.options.MaxPendingReleases)
	}
	l.pending = append(l.pending, d)
}

// takePendingLocked removes the pending releases and returns those that still matter, as operations.
func (l *lane) takePendingLocked() []queueEntry {
	now := l.group.now()
	var out []queueEntry
	for _, d := range l.pending {
		if d.Until > now {
			out = append(out, queueEntry{op: &releaseRetry{l, d}})
		}
	}
	l.pending = nil
	return out
}
