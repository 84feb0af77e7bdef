// Releases that a master has not acknowledged.
//
// A release whose answer did not come is sent again on the next connection,
// after the predecessor has been ended and before anything new is sent, until
// it is answered or the copy that it releases has expired by itself.

package pool

import (
	"slices"
	"sync"
	"time"
)

// maxRefusedRetries bounds the pending releases that a heartbeat sends again. A master's user that may no
// longer release has all of them refused for as long as leases last: up to 650,000 a second.
const maxRefusedRetries = 256

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
	// Once: it is not sent again when it may have been executed, though no answer came.
	Once bool
}

// SettledBy reports whether nothing is left to be sent after an answer. An error reply of
// the master shows that it has not executed the command.
func (p *PendingRelease) SettledBy(a Answer) bool {
	if a.Reply.Err == nil {
		return true
	}
	_, refused := a.Reply.Err.(MasterError)
	return p.Once && a.Sent && !refused
}

func (p *PendingRelease) CommandArgs(m *SendContext) []string {
	if p.ArgsAt == nil {
		return p.Args
	}
	return p.ArgsAt(m.Time - (m.Now - p.Since).Microseconds())
}

// Write writes the command for one master, unless it need not, or must not, be sent there.
func (p *PendingRelease) Write(m *SendContext, c *Command) bool {
	if m.Now > p.Until || p.ConnectedAt != 0 && p.ConnectedAt != m.ConnectedAt {
		return false
	}
	c.Set(p.CommandArgs(m)...)
	return true
}

// pendingReleases has the pending releases of one lane, guarded like it.
type pendingReleases struct {
	mu      *sync.Mutex // the group's
	options *Options
	master  string
	list    []PendingRelease
}

// keep bounds their number: expired ones go first, then the oldest.
func (p *pendingReleases) keep(d PendingRelease) {
	if len(p.list) >= p.options.MaxPendingReleases {
		now := p.options.Clock.Now()
		p.list = slices.DeleteFunc(p.list, func(d PendingRelease) bool { return d.Until < now })
	}
	if len(p.list) >= p.options.MaxPendingReleases {
		p.list = slices.Delete(p.list, 0, len(p.list)/4+1) // in one go: a copy per release would be quadratic
		p.options.Logger.Warn("too many pending releases for a master; the oldest are left to expire",
			"master", p.master, "limit", p.options.MaxPendingReleases)
	}
	p.list = append(p.list, d)
}

// take removes the first ones and returns those that still matter, as operations.
func (p *pendingReleases) take(most int) (out []queueEntry) {
	now, n := p.options.Clock.Now(), min(most, len(p.list))
	for _, d := range p.list[:n] {
		if d.Until > now {
			out = append(out, p.entry(d))
		}
	}
	clear(p.list[:n])
	if p.list = p.list[n:]; len(p.list) == 0 {
		p.list = nil // the memory of an outage may be freed
	}
	return out
}

func (p *pendingReleases) entry(d PendingRelease) queueEntry {
	return queueEntry{op: &releaseRetry{p, d}}
}

// releaseRetry sends one pending release; see PendingRelease.SettledBy.
type releaseRetry struct {
	pending *pendingReleases
	release PendingRelease
}

var _ Operation = (*releaseRetry)(nil)

func (r *releaseRetry) Props() Props       { return Props{Again: r.release.Once} }
func (r *releaseRetry) Propose(int64, int) {}

func (r *releaseRetry) Command(m *SendContext, c *Command) bool { return r.release.Write(m, c) }

// Answer settles the release, or keeps it for the next heartbeat or connection.
func (r *releaseRetry) Answer(a Answer) {
	if r.release.SettledBy(a) {
		return
	}
	r.pending.mu.Lock()
	defer r.pending.mu.Unlock()
	r.pending.keep(r.release)
}
