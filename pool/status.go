// Status and Counters: the state of a master for operators, and the counters of its lanes.

package pool

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"redlockd/pool/clock"
)

// Status is one master as this daemon sees it now, for errors, INFO and logs.
type Status struct {
	Name            string        // as configured
	Address         string        // host:port or socket path
	State           string        // "voting", "quarantined", "failing", "suspect", "dialing", "down", "refused", "draining", "drained"
	Detail          string        // the reason: "connection refused", "restarted, votes in 12.3s"
	Since           time.Duration // age of this state
	Left            time.Duration // of the quarantine, 0 in other states
	RunID           string        // "" until admitted
	Version         string        // of the server
	Durable         bool          // appendonly yes, appendfsync always
	Queued          int           // operations waiting for the next flush
	PendingReleases int           // releases this master has not acknowledged yet
}

func (s Status) phrase() string {
	if s.Detail == "" {
		return s.named() + " " + s.State
	}
	return fmt.Sprintf("%s %s (%s)", s.named(), s.State, s.Detail)
}

// named is the name with the address, unless they are the same.
func (s Status) named() string {
	if s.Name != s.Address && s.Address != "" {
		return s.Name + "=" + s.Address
	}
	return s.Name
}

// MasterReport is one master with all that is measured of it.
type MasterReport struct {
	Status
	Role     string    // "master" while it is connected, "" otherwise
	InFlight int       // operations sent and not answered
	RTT      Histogram // of flushes, heartbeats included
	Votes    Votes
}

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
			Queued: len(l.queue), PendingReleases: len(l.pending),
		}
		if l.incarnation != nil {
			r.RunID, r.Durable = l.incarnation.RunID, l.incarnation.Durable
		}
		if r.State, r.Detail = l.describeLocked(); r.State == quarantinedState {
			r.Left = l.quarantineLocked()
		}
		if c := l.conn; c != nil {
			r.Role = "master"
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
		return quarantinedState, quarantineText(wait)
	}
	return votingState, ""
}

// quarantineLocked is how long a quarantined master still has to wait, 0 if it is not.
func (l *lane) quarantineLocked() time.Duration {
	left := l.conn.incarnation.Base + clock.Micros(l.group.pool.options.Age()) - l.est.At(l.group.now())
	return max(0, time.Duration(left)*time.Microsecond)
}

// Databases are those in use, in order.
func (p *Pool) Databases() []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.groups))
}

// Counters count since the start of the daemon; they never go down.
type Counters struct {
	Flushes         int64              // round trips that carried at least one operation
	Commands        int64              // operations in them, seals not counted
	Seals           int64              // seals sent
	VoidSeals       int64              // flushes whose votes did not count …
	Void            [VoidReasons]int64 // … by VoidReason
	LateFlushes     int64              // flushes answered after the master timeout
	BreakerOpened   int64
	Dials           int64
	Admissions      int64 // connections that may vote
	NewIncarnations int64 // admissions that found no unbroken memory and began a new incarnation
	Panics          int64 // panics recovered; anything but 0 is a bug
	Invalidated     int64 // incarnations invalidated because the master's clock stepped, its memory was rolled back or it may have evicted keys
	StepsTolerated  int64 // steps of masters' clocks that were small enough to invalidate nothing
}

func (c *Counters) add(d Counters) {
	c.Flushes += d.Flushes
	c.Commands += d.Commands
	c.Seals += d.Seals
	c.VoidSeals += d.VoidSeals
	for i, n := range d.Void {
		c.Void[i] += n
	}
	c.LateFlushes += d.LateFlushes
	c.BreakerOpened += d.BreakerOpened
	c.Dials += d.Dials
	c.Admissions += d.Admissions
	c.NewIncarnations += d.NewIncarnations
	c.Panics += d.Panics
	c.Invalidated += d.Invalidated
	c.StepsTolerated += d.StepsTolerated
}
