// Status of the masters as their lanes describe it, and what else other packages read of a pool.

package pool

import (
	"maps"
	"slices"
	"time"

	"redlockd/pool/embedded"
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
	out, own := make([]MasterReport, len(g.lanes)), g.pool.options.ownList(g.pool.Masters())
	for i, l := range g.lanes {
		r := &out[i]
		r.RTT, r.Votes = l.rtt, l.votes.load()
		r.Status = Status{
			Name: l.master.Name, Address: l.master.Address, Since: g.now() - l.since, Version: l.version,
			Queued: len(l.queue.entries), PendingReleases: len(l.pending.list), OwnList: own,
		}
		r.Epoch, r.Configuration = l.carries.compare(g.epoch.Mark, g.pool.options.Group, l.master.Name)
		if l.incarnation != nil {
			r.RunID, r.Durable = l.incarnation.RunID, l.incarnation.Durable
		}
		if r.State, r.Detail = l.drainedLocked(l.stateLocked()); r.State == quarantinedState {
			r.Left = l.quarantineLocked()
		}
		if c := l.conn; c != nil {
			r.WorkLeft, r.Counters = l.workLeftLocked(), c.incarnation.Counters
			all, _ := g.pool.daemons.Load(l.master.Name)
			r.Daemons, _ = all.([]Daemon)
			if r.Role = "master"; l.est.Known {
				r.Clock = time.Duration(l.est.Offset-g.offset) * time.Microsecond
			}
			r.InFlight = c.entriesUnderWay()
		}
	}
	return out
}

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

// workLeftLocked returns the time until the master votes on work that it has no record of.
func (l *lane) workLeftLocked() time.Duration {
	if l.conn.incarnation.Works {
		return 0
	}
	left := l.conn.incarnation.Base - l.est.At(l.group.now())
	return max(0, time.Duration(left)*time.Microsecond+l.group.pool.options.WorkAge())
}

// Time is the group's clock now, the median of its masters' clocks, in µs.
func (g *Group) Time() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.medianLocked(g.now())
}

// Voters counts the masters whose consent would count now, so not those that are
// failing. Of a master whose first connection is being made nothing is known yet.
func (g *Group) Voters() (n int) {
	for _, s := range g.Statuses() {
		if s.State == votingState {
			n++
		}
	}
	return n
}

// Volatile names every connected master that may forget in a crash, and the
// reason.
func (g *Group) Volatile() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var out []string
	for _, l := range g.lanes {
		if l.conn != nil && !l.conn.incarnation.Durable {
			reason := l.volatile
			if reason == "" {
				reason = "been volatile since it was admitted"
			}
			out = append(out, l.master.Name+" has "+reason)
		}
	}
	return out
}

// Databases returns those in use, in order.
func (p *Pool) Databases() []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.groups))
}

// Busy counts the operations queued and the lanes at work, over all databases: while a task
// runs, operations may be on their way, or their answers may still queue others.
func (p *Pool) Busy() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, g := range p.groups {
		g.mu.Lock()
		for _, l := range g.lanes {
			n += len(l.queue.entries)
			if l.running || l.conn != nil && (len(l.conn.flushes) > 0 || l.conn.settling) {
				n++
			}
		}
		g.mu.Unlock()
	}
	return n
}

// HasListeners reports whether any database's events have a listener, in this daemon or
// in another one. It costs one atomic load.
func (p *Pool) HasListeners() bool { return p.listenedDBs.Load() != 0 }

// N is the number of masters, Quorum how many of them decide.
func (p *Pool) N() int      { return len(p.Masters()) }
func (p *Pool) Quorum() int { return Quorum(p.N()) }

// Master is the one of a lane. The list may have become shorter than it was when the lane answered.
func (p *Pool) Master(lane int) Master {
	if list := p.Masters(); lane < len(list) {
		return list[lane]
	}
	return Master{Name: "a former master"}
}

// Embedded returns the in-process masters, nil with real ones.
func (p *Pool) Embedded() embedded.Masters { return p.inProcess.masters }

// Counters of this database's lanes.
func (g *Group) Counters() Counters {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.counters
}

// Counters adds up all databases.
func (p *Pool) Counters() Counters {
	p.mu.Lock()
	defer p.mu.Unlock()
	var sum Counters
	for _, g := range p.groups {
		sum.Add(g.Counters())
	}
	return sum
}
