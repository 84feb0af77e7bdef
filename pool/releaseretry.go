// Release retry: the releases that a lane sends again, see pendingrelease.go.

package pool

import "slices"

// maxRefusedRetries is how many pending releases a heartbeat sends again. A master's user that may no
// longer release has all of them refused for as long as leases last: up to 650,000 a second.
const maxRefusedRetries = 256

// releaseRetry sends one pending release; see PendingRelease.SettledBy.
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
	if d.release.SettledBy(a) {
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

// takePendingLocked removes the first pending releases and returns those that still matter, as operations.
func (l *lane) takePendingLocked(most int) []queueEntry {
	now, n := l.group.now(), min(most, len(l.pending))
	var out []queueEntry
	for _, d := range l.pending[:n] {
		if d.Until > now {
			out = append(out, queueEntry{op: &releaseRetry{l, d}})
		}
	}
	clear(l.pending[:n])
	l.pending = l.pending[n:]
	return out
}
