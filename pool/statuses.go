package pool

import (
	"maps"
	"slices"
)

// Statuses returns every master as this database's lanes see it.
func (g *Group) Statuses() []Status {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	out := make([]Status, 0, len(g.lanes))
	for _, l := range g.lanes {
		s := Status{
			Name: l.master.Name, Address: l.master.Address,
			Since: now - l.since, Version: l.version,
			Queued: len(l.queue), PendingReleases: len(l.pending),
		}
		if l.incarnation != nil {
			s.RunID, s.Durable = l.incarnation.RunID, l.incarnation.Durable
		}
		s.State, s.Detail = l.describeLocked()
		if s.State == quarantinedState {
			s.Left = l.quarantineLocked()
		}
		out = append(out, s)
	}
	return out
}

func (l *lane) describeLocked() (state, detail string) { return l.drainedLocked(l.stateLocked()) }

// stateLocked is the state without drains.
func (l *lane) stateLocked() (state, detail string) {
	switch l.state {
	case stateDialing:
		return "dialing", ""
	case stateDown:
		return "down", l.cause.Error() + ", " + humanDuration(l.group.now()-l.since) + " ago"
	case stateRefused:
		return "refused", l.cause.Error()
	}
	if l.anomaly != nil {
		return "suspect", "its clock does not fit"
	}
	if l.failing != nil {
		return "failing", l.failing.Error()
	}
	if wait := l.quarantineLocked(); wait > 0 {
		return quarantinedState, quarantineText(wait)
	}
	return votingState, ""
}

// MasterReport is one master with all that is measured of it.
type MasterReport struct {
	Status
	Role     string    // "master" while it is connected, "" otherwise
	InFlight int       // operations sent and not answered
	RTT      Histogram // of flushes, heartbeats included
	Votes    Votes
}

// Reports returns every master as this database's lanes see it, with figures that
// Statuses leaves out because errors do not need them.
func (g *Group) Reports() []MasterReport {
	statuses := g.Statuses()
	out := make([]MasterReport, len(statuses))
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, l := range g.lanes {
		out[i] = MasterReport{Status: statuses[i], RTT: l.rtt, Votes: l.votes.load()}
		if c := l.conn; c != nil {
			out[i].Role = "master"
			if c.inFlight || c.stalled {
				out[i].InFlight = len(c.flush.entries)
			}
		}
	}
	return out
}

// Databases are those in use, in order.
func (p *Pool) Databases() []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.groups))
}
