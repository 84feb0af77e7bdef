// Views: what other packages read of a pool and its lanes.

package pool

import (
	"maps"
	"slices"
)

// Time is the group's clock now, the median of its masters' clocks, in µs.
func (g *Group) Time() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.medianLocked(g.now())
}

// Voters counts the masters whose consent would count now, so not those that are
// failing. A master whose first connection is being made counts, too.
func (g *Group) Voters() (n int) {
	for _, s := range g.Statuses() {
		if s.State == votingState || s.State == dialingState && s.Detail == "" { // else it is being drained
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

// Databases are those in use, in order.
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
			if l.running {
				n++
			}
		}
		g.mu.Unlock()
	}
	return n
}
