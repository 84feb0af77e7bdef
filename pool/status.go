// Status is the state of a master for operators.

package pool

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"redlockd/pool/admission"
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
	Epoch           int64         // of the configuration that it carried at the last look, 0 = none
	// Configuration compares that with this daemon's: "current", "stale", "newer", "left" (the
	// master is not in the list that it carries), "other" (another group, or a change that
	// lost) or "none". "" if one of the two is not known.
	Configuration string
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

// Epoch is that of the daemon's configuration, 0 while no master has shown that it carries it.
func Epoch(reports []MasterReport) int64 {
	for i := range reports {
		if reports[i].Configuration == configurationCurrent {
			return reports[i].Epoch
		}
	}
	return 0
}

// configurationCurrent is a Status.Configuration: the daemon's own.
const configurationCurrent = "current"

// MasterReport is one master with all that is measured of it.
type MasterReport struct {
	Status
	Group    string        // of several groups; "" = there is one
	Role     string        // "master" while it is connected, "" otherwise
	InFlight int           // operations sent and not answered
	RTT      Histogram     // of flushes, heartbeats included
	Clock    time.Duration // how far its clock is ahead of the masters' median, while it is connected
	Votes    Votes
}

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
			Queued: len(l.queue), PendingReleases: len(l.pending),
		}
		r.Epoch, r.Configuration = l.carries.compare(g.epoch.Mark, g.pool.options.Group, l.master.Name)
		if l.incarnation != nil {
			r.RunID, r.Durable = l.incarnation.RunID, l.incarnation.Durable
		}
		if r.State, r.Detail = l.describeLocked(); r.State == quarantinedState {
			r.Left = l.quarantineLocked()
		}
		if c := l.conn; c != nil {
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

// compare is the epoch that a master carries, and how its configuration compares with that of a
// daemon of this group.
func (c *carried) compare(own, group, name string) (epoch int64, word string) {
	epoch = admission.EpochOf(c.Mark)
	switch now := c.Stored.Now; {
	case c.at == 0 || own == "":
		return epoch, ""
	case c.Fingerprint == "":
		return epoch, "none"
	case c.Ours && c.Mark == own:
		return epoch, configurationCurrent
	case now == nil || now.Mark() != c.Mark || now.Group != group || epoch == admission.EpochOf(own):
		return epoch, "other"
	case c.hasLeft(name):
		return epoch, "left"
	case epoch > admission.EpochOf(own):
		return epoch, "newer"
	}
	return epoch, "stale"
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
