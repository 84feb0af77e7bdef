// Releases that a master has not acknowledged.
//
// A release whose answer did not come is sent again on the next connection,
// after the predecessor has been ended and before anything new is sent, until
// it is answered or the copy that it releases has expired by itself.

package pool

import "time"

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
func (d *PendingRelease) SettledBy(a Answer) bool {
	if a.Reply.Err == nil {
		return true
	}
	_, refused := a.Reply.Err.(MasterError)
	return d.Once && a.Sent && !refused
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
