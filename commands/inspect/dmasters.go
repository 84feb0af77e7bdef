// DMASTERS: the masters as the lanes of this client's database see them, and which
// of them this daemon drains.

package inspect

import (
	"redlockd/commands"
	"redlockd/redlock"
)

// dmasters answers an array of maps. Times are integer milliseconds, round
// trips and differences of clocks integer microseconds: a millisecond is more than most of
// them take.
func (h *handlers) dmasters(c *commands.Call) error {
	reports := h.deps.Masters.Reports(c.Client.DB)
	items := make([]commands.Reply, len(reports))
	for i := range reports {
		items[i] = masterReply(&reports[i])
	}
	return c.Reply(commands.Array(items...))
}

func masterReply(m *redlock.MasterReport) commands.Reply {
	reply := commands.Map(
		commands.Bulk("name"), commands.Bulk(m.Name),
		commands.Bulk("address"), commands.Bulk(m.Address),
		commands.Bulk("state"), commands.Bulk(m.State),
		commands.Bulk("detail"), commands.Bulk(commands.Line(m.Detail)),
		commands.Bulk("since_ms"), commands.Int(m.Since.Milliseconds()),
		commands.Bulk("left_ms"), commands.Int(m.Left.Milliseconds()),
		commands.Bulk("work_left_ms"), commands.Int(m.WorkLeft.Milliseconds()),
		commands.Bulk("counters"), commands.Bool(m.Counters),
		commands.Bulk("epoch"), commands.Int(m.Epoch),
		commands.Bulk("configuration"), commands.Bulk(m.Configuration),
		commands.Bulk("own_list"), commands.Bulk(m.OwnList),
		commands.Bulk("run_id"), commands.Bulk(m.RunID),
		commands.Bulk("version"), commands.Bulk(m.Version),
		commands.Bulk("role"), commands.Bulk(m.Role),
		commands.Bulk("durable"), commands.Bool(m.Durable),
		commands.Bulk("rtt_p50_us"), commands.Int(m.RTT.Quantile(0.5).Microseconds()),
		commands.Bulk("rtt_p99_us"), commands.Int(m.RTT.Quantile(0.99).Microseconds()),
		commands.Bulk("rtt_counts"), commands.Bulk(m.RTT.String()),
		commands.Bulk("clock_us"), commands.Int(m.Clock.Microseconds()),
		commands.Bulk("in_flight"), commands.Int(int64(m.InFlight)),
		commands.Bulk("queued"), commands.Int(int64(m.Queued)),
		commands.Bulk("pending_releases"), commands.Int(int64(m.PendingReleases)),
		commands.Bulk("granted"), commands.Int(m.Votes.Yes),
		commands.Bulk("refused"), commands.Int(m.Votes.No),
		commands.Bulk("uncounted"), commands.Int(m.Votes.Uncounted),
		commands.Bulk("daemons"), commands.Int(int64(len(m.Daemons))),
		commands.Bulk("stale_daemons"), commands.Int(int64(len(m.StaleDaemons()))),
	)
	if m.Group != "" {
		reply.Items = append(reply.Items, commands.Bulk("group"), commands.Bulk(m.Group))
	}
	return reply
}
