// DMASTERS: the masters as the lanes of this client's database see them, and which
// of them this daemon drains.

package commands

import (
	"redlockd/commands/access"
	"redlockd/redlock"
)

// MasterReports is what DMASTERS shows.
type MasterReports interface {
	Reports(db int) []redlock.MasterReport
}

// MasterDrain takes masters out of service for maintenance, and back in.
type MasterDrain interface {
	DrainMaster(name string) error
	UndrainMaster(name string) error
}

var (
	_ MasterReports = (*redlock.Locker)(nil)
	_ MasterDrain   = (*redlock.Locker)(nil)
)

func (t *Table) masterRows() []*command {
	return []*command{{
		name: "dmasters", arity: exactly(1), category: access.CategoryRead, since: firstVersion,
		summary: "Shows the masters: a map for each, with its state, latency, queue and votes.",
		flags:   []string{"readonly", "fast"},
		handle:  served(t.deps.MasterStatus != nil, t.dmasters),
		parts: []*command{
			t.drainRow("drain", "Sends a master no new requests from this daemon, for its maintenance.", func(name string) error { return t.deps.MasterDrain.DrainMaster(name) }),
			t.drainRow("undrain", "Ends the drain of a master.", func(name string) error { return t.deps.MasterDrain.UndrainMaster(name) }),
		},
	}}
}

func (t *Table) drainRow(name, summary string, apply func(master string) error) *command {
	return &command{
		name: name, arity: exactly(3), category: access.CategoryAdmin, summary: summary,
		flags: []string{"admin"}, args: []argument{text("master")},
		handle: served(t.deps.MasterDrain != nil, func(c *Call) error {
			if err := apply(c.Args[2]); err != nil {
				return err
			}
			c.Reply(OK)
			return nil
		}),
	}
}

// dmasters answers an array of maps. Times are integer milliseconds, round
// trips integer microseconds: a millisecond is more than most of them take.
func (t *Table) dmasters(c *Call) error {
	reports := t.deps.MasterStatus.Reports(c.Client.DB)
	items := make([]Reply, len(reports))
	for i := range reports {
		items[i] = masterReply(&reports[i])
	}
	c.Reply(Array(items...))
	return nil
}

func masterReply(m *redlock.MasterReport) Reply {
	durable := int64(0)
	if m.Durable {
		durable = 1
	}
	return Map(
		Bulk("name"), Bulk(m.Name),
		Bulk("address"), Bulk(m.Address),
		Bulk("state"), Bulk(m.State),
		Bulk("detail"), Bulk(field(m.Detail)),
		Bulk("since_ms"), Int(m.Since.Milliseconds()),
		Bulk("run_id"), Bulk(m.RunID),
		Bulk("version"), Bulk(m.Version),
		Bulk("role"), Bulk(m.Role),
		Bulk("durable"), Int(durable),
		Bulk("rtt_p50_us"), Int(m.RTT.Quantile(0.5).Microseconds()),
		Bulk("rtt_p99_us"), Int(m.RTT.Quantile(0.99).Microseconds()),
		Bulk("in_flight"), Int(int64(m.InFlight)),
		Bulk("queued"), Int(int64(m.Queued)),
		Bulk("pending_releases"), Int(int64(m.PendingReleases)),
		Bulk("granted"), Int(m.Votes.Yes),
		Bulk("refused"), Int(m.Votes.No),
		Bulk("uncounted"), Int(m.Votes.Uncounted),
	)
}
