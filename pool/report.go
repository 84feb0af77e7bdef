// Report: the state of a master, and of the daemons on it, for operators.

package pool

import (
	"fmt"
	"slices"
	"time"

	"redlockd/pool/admission"
)

// Status is one master as this daemon sees it now, for errors, INFO and logs.
type Status struct {
	Name            string        // as configured
	Address         string        // host:port or socket path
	State           string        // "voting", "quarantined", "failing", "suspect", "dialing", "down", "refused", "draining", "drained"
	Detail          string        // the reason: "connection refused", "restarted, votes in 12.3s"
	Since           time.Duration // age of this state
	Left            time.Duration // of the quarantine, 0 in other states
	WorkLeft        time.Duration // until it votes on work that it has no record of, 0 if it is not connected
	Counters        bool          // it has all counters of ids: one that it lacks was never used
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
	OwnList       string // the list in this daemon's settings, if it uses another one; "" = the same
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

// Epoch returns the epoch of the daemon's configuration, 0 while no master has shown that it carries it.
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

// OwnList is the list in the daemon's settings, if it uses another one, in any of the groups.
func OwnList(reports []MasterReport) string {
	for i := range reports {
		if reports[i].OwnList != "" {
			return reports[i].OwnList
		}
	}
	return ""
}

// MasterReport is one master with all that is measured of it.
type MasterReport struct {
	Status
	Group    string        // of several groups; "" = there is one
	Role     string        // "master" while it is connected, "" otherwise
	InFlight int           // operations sent and not answered
	RTT      Histogram     // of flushes, heartbeats included
	Clock    time.Duration // how far its clock is ahead of the masters' median, while it is connected
	Votes    Votes
	Daemons  []Daemon // that it listed last, while it is connected
}

// WorkVoters counts the masters that vote on new work; in is the time until a quorum does, of those
// that are connected, and 0 if one does or too few are.
func WorkVoters(reports []MasterReport) (n int, in time.Duration) {
	var waits []time.Duration
	for i := range reports {
		if m := &reports[i]; m.State == votingState || m.State == quarantinedState {
			waits = append(waits, max(m.Left, m.WorkLeft))
			if m.State == votingState && m.WorkLeft <= 0 {
				n++
			}
		}
	}
	slices.Sort(waits)
	if q := Quorum(len(reports)); n < q && q <= len(waits) {
		in = waits[q-1]
	}
	return n, in
}

// CounterVoters counts the masters that vote on counters which they do not have. possible: so many are
// durable that ids can be given.
func CounterVoters(reports []MasterReport) (n int, possible bool) {
	durable := 0
	for i := range reports {
		if m := &reports[i]; m.State == votingState {
			if m.Durable {
				durable++
			}
			if m.Counters {
				n++
			}
		}
	}
	return n, durable >= Quorum(len(reports))
}

// Daemons merges the lists of the masters, each daemon with the newest of its epochs.
func Daemons(reports []MasterReport) (all []Daemon) {
	for i := range reports {
		all = admission.MergeDaemons(all, reports[i].Daemons...)
	}
	return all
}

// StaleDaemons are those with a former epoch, or with none.
func (r *MasterReport) StaleDaemons() []Daemon { return stale(r.Daemons, r.Epoch) }

// StaleDaemons are those of all masters, in any of their groups.
func StaleDaemons(reports []MasterReport) (all []Daemon) {
	for _, group := range ByGroup(reports) {
		all = admission.MergeDaemons(all, stale(Daemons(group), Epoch(group))...)
	}
	return all
}

// ByGroup splits the reports of several groups, which follow one another.
func ByGroup(reports []MasterReport) (groups [][]MasterReport) {
	for len(reports) > 0 {
		n := slices.IndexFunc(reports, func(m MasterReport) bool { return m.Group != reports[0].Group })
		if n < 0 {
			n = len(reports)
		}
		groups, reports = append(groups, reports[:n]), reports[n:]
	}
	return groups
}

func stale(all []Daemon, epoch int64) []Daemon {
	return slices.DeleteFunc(slices.Clone(all), func(d Daemon) bool { return d.Epoch >= epoch })
}
