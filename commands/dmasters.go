// DMASTERS: the masters as the lanes of this client's database see them, and which
// of them this daemon drains.

package commands

import "redlockd/redlock"

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
