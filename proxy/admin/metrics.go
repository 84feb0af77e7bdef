package admin

// metrics.go exports the metrics for Prometheus. Nothing is counted here: a scrape
// reads the counters that the packages keep anyway, most of them by commands.Figures.

import (
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"redlockd/commands"
	"redlockd/commands/dropin"
	"redlockd/pool"
	"redlockd/redlock"
)

// Locks shows the masters, the locks and the waiters. Completions are called exactly once.
type Locks interface {
	Reports(db int) []redlock.MasterReport
	ReadLock(db int, key redlock.Key, done func(redlock.LockView, error))
	Waiting(db int, wanted func(redlock.Key) bool, limit int) (list []redlock.Waiting, all int)
	// Listen reports every event until end is called.
	Listen(db int, onEvent func(redlock.Event)) (end func())
}

// Masters describes the pool of a group.
type Masters interface {
	Databases() []int
	Quorum() int
	Reports(db int) []redlock.MasterReport
}

// Group is a group of masters; its name is a label of metrics unless there is one group, without a
// name.
type Group struct {
	Name    string
	Masters Masters
}

var (
	_ Locks   = (*redlock.Locker)(nil)
	_ Masters = (*pool.Pool)(nil)
)

// Sources provide the data of metrics and page.
type Sources struct {
	Version   string
	Locks     Locks
	Groups    []Group
	GroupOf   func(redlock.Key) string // its name; not called with one group
	Snapshot  func() commands.Snapshot
	Latencies *Latencies
	Dropin    func() []dropin.Stat
	Warning   string // shown on the page as long as the daemon runs; "" = none
}

// newFigures gathers all metrics of the daemon and of its process.
func newFigures(s Sources) prometheus.Gatherer {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	registry.MustRegister(s.Latencies.locks.times, s.Latencies.waits.times, s.Latencies.results, &collector{s})
	return registry
}

// collector serves scrapes.
type collector struct{ Sources }

// Describe sends nothing: masters and databases are known only during a scrape.
func (c *collector) Describe(chan<- *prometheus.Desc) {}

// Collect is called by each scrape.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	p := scrape{out}
	p.gauge("redlockd_build_info", "Always 1; the labels are the version and the Go release of this build.", 1, "version", c.Version, "go", runtime.Version())
	snapshot := c.Snapshot()
	for _, f := range commands.Figures {
		n, ok := f.Number(&snapshot)
		switch {
		case ok && f.Gauge:
			p.gauge(f.Metric, f.Help, n)
		case ok:
			p.write(f.Metric, f.Help, prometheus.CounterValue, n, nil)
		}
	}
	for i, void := range snapshot.Lanes.Void {
		p.count("redlockd_seals_void_total", "Flushes whose votes did not count, by reason.", void, "reason", pool.VoidReason(i))
	}
	held := &snapshot.Locks.HeldFor
	last := len(held.Counts) - 1 // has no upper bound
	p.histogram("redlockd_lock_held_seconds", "Time from the grant of a lock to its release, of locks that this daemon granted and released before their end.",
		held.Counts[:last], held.Counts[last], 1, held.Bound, held.Sum, nil)
	c.dropin(p)
	for _, g := range c.Groups {
		for _, db := range g.Masters.Databases() {
			g.masters(p, db)
		}
	}
}

var boolValue = map[bool]float64{true: 1}

var states = []string{"voting", "quarantined", "suspect", "failing", "dialing", "down", "refused", "draining", "drained"}

func (g *Group) masters(p scrape, db int) {
	reports, voting := g.Masters.Reports(db), 0
	where := []string{"database", strconv.Itoa(db)}
	if g.Name != "" {
		where = append(where, "group", g.Name)
	}
	for i := range reports {
		m := &reports[i]
		if m.State == "voting" {
			voting++
		}
		p.master(m, where)
	}
	p.gauge("redlockd_masters", "Configured masters.", float64(len(reports)), where...)
	p.gauge("redlockd_masters_needed", "Masters needed for a quorum.", float64(g.Masters.Quorum()), where...)
	p.gauge("redlockd_masters_voting", "Masters whose votes count now.", float64(voting), where...)
	work, _ := pool.WorkVoters(reports)
	counters, possible := pool.CounterVoters(reports)
	p.gauge("redlockd_masters_voting_work", "Masters among them whose votes count for work that they have no record of.", float64(work), where...)
	p.gauge("redlockd_counters_forgotten", "1 if masters vote and are durable, but too few have all counters of ids.", boolValue[possible && counters < g.Masters.Quorum()], where...)
	p.gauge("redlockd_configuration_epoch", "Epoch of the daemon's configuration, 0 if it is not known.", float64(pool.Epoch(reports)), where...)
	p.gauge("redlockd_masters_list_differs", "1 if the daemon uses another list of masters than its settings have, because it followed a change.", boolValue[pool.OwnList(reports) != ""], where...)
	p.gauge("redlockd_daemons", "Daemons of the group that the masters list, this one included.", float64(len(pool.Daemons(reports))), where...)
	p.gauge("redlockd_daemons_stale", "Daemons among them with a former epoch of the configuration, or with none.", float64(len(pool.StaleDaemons(reports))), where...)
}

func (s scrape) master(m *redlock.MasterReport, where []string) {
	which := append([]string{"master", m.Name}, where...)
	with := func(more ...string) []string { return append(slices.Clip(which), more...) }
	for _, state := range states {
		s.gauge("redlockd_master_state", "1 for the present state of a master.", boolValue[m.State == state], with("state", state)...)
	}
	s.gauge("redlockd_master_state_seconds", "Time since a master's connection was opened or closed.", m.Since.Seconds(), which...)
	s.gauge("redlockd_master_durable", "1 if a master has its acknowledged writes on disk.", boolValue[m.Durable], which...)
	s.gauge("redlockd_master_queued_operations", "Operations that wait for a master's next flush.", float64(m.Queued), which...)
	s.gauge("redlockd_master_in_flight_operations", "Operations sent to a master and not answered.", float64(m.InFlight), which...)
	s.gauge("redlockd_master_pending_releases", "Releases that a master has not acknowledged yet.", float64(m.PendingReleases), which...)
	s.count("redlockd_master_votes_total", "Answers of a master to operations that acquire a key.", m.Votes.Yes, with("vote", "yes")...)
	s.count("redlockd_master_votes_total", "Answers of a master to operations that acquire a key.", m.Votes.No, with("vote", "no")...)
	s.count("redlockd_master_votes_total", "Answers of a master to operations that acquire a key.", m.Votes.Uncounted, with("vote", "uncounted")...)
	// A bound for each doubling: finer ones would be most of the output.
	s.histogram("redlockd_master_round_trip_seconds", "Round trips of flushes to a master, heartbeats included.", m.RTT.Counts[:], 0, 4, pool.Bound, m.RTT.Sum, which)
}

// dropin exports which lock libraries use this daemon as one Redis.
func (c *collector) dropin(s scrape) {
	for _, f := range c.Dropin() {
		which := []string{"library", f.Library, "does", f.Operation}
		with := func(outcome string) []string { return append(which[:4:4], "outcome", outcome) }
		const name, help = "redlockd_dropin_total", "Commands and scripts of clients that use the quorum as one Redis, by library and outcome: yes, no or undecided."
		s.count(name, help, f.Yes, with("yes")...)
		s.count(name, help, f.No, with("no")...)
		s.count(name, help, f.Undecided, with("undecided")...)
		last := len(f.Times) - 1 // has no upper bound
		s.histogram("redlockd_dropin_seconds", "Time from such a command to its outcome.", f.Times[:last], f.Times[last], 1, dropin.Bound, f.Sum, which)
	}
}

// scrape is one response to Prometheus. Labels alternate names and values.
type scrape struct{ out chan<- prometheus.Metric }

func (s scrape) count(name, help string, n int64, labels ...string) {
	s.write(name, help, prometheus.CounterValue, float64(n), labels)
}

func (s scrape) gauge(name, help string, value float64, labels ...string) {
	s.write(name, help, prometheus.GaugeValue, value, labels)
}

func (s scrape) write(name, help string, kind prometheus.ValueType, value float64, labels []string) {
	desc, values := describe(name, help, labels)
	s.out <- prometheus.MustNewConstMetric(desc, kind, value, values...)
}

// histogram writes one: counts by buckets, the count beyond them, and the bound of every
// n-th bucket.
func (s scrape) histogram(name, help string, counts []uint64, beyond uint64, every int, bound func(int) time.Duration, sum time.Duration, labels []string) {
	bounds, all := make(map[float64]uint64), uint64(0)
	for i, n := range counts {
		if all += n; i%every == every-1 {
			bounds[bound(i).Seconds()] = all
		}
	}
	desc, values := describe(name, help, labels)
	s.out <- prometheus.MustNewConstHistogram(desc, all+beyond, sum.Seconds(), bounds, values...)
}

func describe(name, help string, labels []string) (desc *prometheus.Desc, values []string) {
	var names []string
	for i := 0; i+1 < len(labels); i += 2 {
		names, values = append(names, labels[i]), append(values, labels[i+1])
	}
	return prometheus.NewDesc(name, help, names, nil), values
}
