// Status of a master: how its lane describes it.

package pool

import (
	"time"

	"redlockd/pool/masterlog"
)

// Reports are those of a database, which is used from then on.
func (p *Pool) Reports(db int) []MasterReport { return p.Group(db).Reports() }

// Statuses returns every master as this database's lanes see it.
func (g *Group) Statuses() []Status {
	var out []Status
	for _, r := range g.Reports() {
		out = append(out, r.Status)
	}
	return out
}

// Reports returns every master as this database's lanes see it, with figures that
// Statuses leaves out because errors do not need them.
func (g *Group) Reports() []MasterReport {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := make([]MasterReport, len(g.lanes))
	for i, l := range g.lanes {
		r := &out[i]
		r.RTT, r.Votes = l.rtt, l.votes.load()
		r.Status = Status{
			Name: l.master.Name, Address: l.master.Address, Since: g.now() - l.since, Version: l.version,
			Queued: len(l.queue.entries), PendingReleases: len(l.pending.list),
		}
		r.Epoch, r.Configuration = l.carries.compare(g.epoch.Mark, g.pool.options.Group, l.master.Name)
		if l.incarnation != nil {
			r.RunID, r.Durable = l.incarnation.RunID, l.incarnation.Durable
		}
		if r.State, r.Detail = l.describeLocked(); r.State == quarantinedState {
			r.Left = l.quarantineLocked()
		}
		if c := l.conn; c != nil {
			all, _ := g.pool.daemons.Load(l.master.Name)
			r.Daemons, _ = all.([]Daemon)
			if r.Role = "master"; l.est.Known {
				r.Clock = time.Duration(l.est.Offset-g.offset) * time.Microsecond
			}
			if c.inFlight || c.stalled {
				r.InFlight = len(c.flush.entries)
			}
		}
	}
	return out
}

func (l *lane) describeLocked() (state, detail string) { return l.drainedLocked(l.stateLocked()) }

// stateLocked is the state without drains.
func (l *lane) stateLocked() (state, detail string) {
	switch {
	case l.state == stateDialing:
		return dialingState, ""
	case l.state == stateDown:
		return "down", l.cause.Error() + ", " + humanDuration(l.group.now()-l.since) + " ago"
	case l.state == stateRefused:
		return "refused", l.cause.Error()
	case l.anomaly != nil:
		return "suspect", "its clock does not fit"
	case l.failing != nil:
		return "failing", l.failing.Error()
	}
	if wait := l.quarantineLocked(); wait > 0 {
		return quarantinedState, masterlog.QuarantineText(wait)
	}
	return votingState, ""
}
