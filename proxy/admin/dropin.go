package admin

// dropin.go exports which lock libraries use this daemon as one Redis, and how long
// their commands take.

import (
	"github.com/prometheus/client_golang/prometheus"

	"redlockd/commands/dropin"
)

func (c *collector) dropin(s scrape) {
	if c.Dropin == nil {
		return
	}
	for _, f := range c.Dropin() {
		which := []string{"library", f.Library, "does", f.Operation}
		with := func(outcome string) []string { return append(which[:4:4], "outcome", outcome) }
		const name, help = "redlockd_dropin_total", "Commands and scripts of clients that use the quorum as one Redis, by library and outcome: yes, no or undecided."
		s.count(name, help, f.Yes, with("yes")...)
		s.count(name, help, f.No, with("no")...)
		s.count(name, help, f.Undecided, with("undecided")...)
		s.powersOfTwo("redlockd_dropin_seconds", "Time from such a command to its outcome.", &f, which...)
	}
}

func (s scrape) powersOfTwo(name, help string, f *dropin.Stat, labels ...string) {
	desc, values := describe(name, help, labels)
	bounds, seen := make(map[float64]uint64), uint64(0)
	for i, n := range f.Times {
		if seen += n; i < len(f.Times)-1 { // the last one has no upper bound
			bounds[dropin.Bound(i).Seconds()] = seen
		}
	}
	s.out <- prometheus.MustNewConstHistogram(desc, seen, f.Sum.Seconds(), bounds, values...)
}
