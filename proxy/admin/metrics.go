package admin

// metrics.go exports the metrics for Prometheus. Nothing is counted here: a scrape
// reads the counters that the packages keep anyway.

import (
	"runtime"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"redlockd/commands"
	"redlockd/commands/dropin"
	"redlockd/pool"
	"redlockd/redlock"
)

// LockStats provides the counters of the lock algorithms.
type LockStats interface {
	Counters() redlock.Counters
	InFlight() int
	Reports(db int) []redlock.MasterReport
}

// MasterStats provides the counters of the lanes.
type MasterStats interface {
	Counters() pool.Counters
	Databases() []int
	Quorum() int
}

var (
	_ LockStats   = (*redlock.Locker)(nil)
	_ MasterStats = (*pool.Pool)(nil)
)

// Sources provide the data of metrics and page.
type Sources struct {
	Version   string
	Locks     LockStats
	Masters   MasterStats
	Clients   func() commands.ClientCounts
	Latencies *Latencies
	Dropin    func() []dropin.Stat        // nil: no drop-in clients
	Traces    func() commands.TraceCounts // nil: no traces
	Reader    LockReader                  // nil: no page
	Warning   string                      // shown on the page as long as the daemon runs; "" = none
}

// NewFigures gathers all metrics of the daemon and of its process.
func NewFigures(s Sources) prometheus.Gatherer {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	registry.MustRegister(s.Latencies.locks.times, s.Latencies.waits.times, &collector{s})
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
	c.locks(p)
	c.lanes(p)
	c.clients(p)
	c.dropin(p)
	if c.Traces != nil {
		n := c.Traces()
		p.count("redlockd_traces_sent_total", "Spans of operations that the collector accepted.", n.Sent)
		p.count("redlockd_traces_dropped_total", "Spans that were lost because the collector did not accept them.", n.Dropped)
	}
	for _, db := range c.Masters.Databases() {
		c.masters(p, db)
	}
}

func (c *collector) locks(p scrape) {
	n := c.Locks.Counters()
	p.count("redlockd_locks_acquired_total", "Grants.", n.Acquired)
	p.count("redlockd_locks_refused_total", "Lock requests answered nil: another client held the key.", n.Refused)
	p.count("redlockd_locks_expired_total", "Quorums reached too late (EXPIRED).", n.Expired)
	p.count("redlockd_locks_split_total", "Ballots without a quorum for any client.", n.Split)
	p.count("redlockd_locks_released_total", "Releases.", n.Released)
	p.count("redlockd_locks_extended_total", "Extensions.", n.Extended)
	p.count("redlockd_locks_given_back_total", "Grants released because the client had gone.", n.GivenBack)
	p.count("redlockd_holds_lost_total", "Leases under renewal that were lost.", n.HoldsLost)
	p.count("redlockd_no_quorum_total", "Operations that could not be decided (NOQUORUM).", n.NoQuorum)
	p.count("redlockd_copies_undone_total", "Copies of failed attempts released on single masters.", n.Undone)
	p.count("redlockd_copies_late_total", "Copies made after the decision and released.", n.LateGrants)
	p.count("redlockd_copies_repaired_total", "Copies made again on masters that had lost an extended lease.", n.Repaired)
	p.count("redlockd_fence_second_seals_total", "Grants that needed one more seal for their fence.", n.SecondSeals)
	p.count("redlockd_fence_third_seals_total", "Grants that needed yet another seal.", n.ThirdSeals)
	p.count("redlockd_ids_total", "Ids issued.", n.IDs)
	p.count("redlockd_id_rounds_total", "Proposals to the masters for ids.", n.IDRounds)
	p.count("redlockd_work_started_total", "Attempts at work granted.", n.WorkStarted)
	p.count("redlockd_work_done_total", "Pieces of work marked done.", n.WorkDone)
	p.gauge("redlockd_operations_in_flight", "Operations that have not been answered yet.", float64(c.Locks.InFlight()))
}

func (c *collector) lanes(p scrape) {
	n := c.Masters.Counters()
	p.count("redlockd_flushes_total", "Round trips to masters.", n.Flushes)
	p.count("redlockd_flushed_operations_total", "Operations in them.", n.Commands)
	p.count("redlockd_seals_total", "Seals sent.", n.Seals)
	for i, void := range n.Void {
		p.count("redlockd_seals_void_total", "Flushes whose votes did not count, by reason.", void, "reason", pool.VoidReason(i))
	}
	p.count("redlockd_late_flushes_total", "Flushes answered after the master timeout.", n.LateFlushes)
	p.count("redlockd_breaker_opened_total", "Times the daemon stopped sending to a master because it did not answer.", n.BreakerOpened)
	p.count("redlockd_dials_total", "Connections to masters tried.", n.Dials)
	p.count("redlockd_admissions_total", "Connections to masters that may vote.", n.Admissions)
	p.count("redlockd_new_incarnations_total", "Admissions of a master as a new incarnation: its memory was not unbroken.", n.NewIncarnations)
	p.count("redlockd_incarnations_invalidated_total", "Incarnations invalidated because a clock stepped, acknowledged writes were lost or keys may have been evicted.", n.Invalidated)
	p.count("redlockd_clock_steps_tolerated_total", "Steps of masters' clocks that were too small to invalidate an incarnation.", n.StepsTolerated)
	p.count("redlockd_panics_total", "Panics recovered in the lanes; anything but 0 is a bug.", n.Panics)
}

func (c *collector) clients(p scrape) {
	n := c.Clients()
	p.gauge("redlockd_clients_connected", "Open connections of clients.", float64(n.Connected))
	p.gauge("redlockd_clients_limit", "Limit of open connections (--max-clients).", float64(n.Limit))
	p.count("redlockd_clients_accepted_total", "Connections accepted.", n.Accepted)
	p.count("redlockd_clients_rejected_total", "Connections rejected because of a limit.", n.Rejected)
	p.count("redlockd_clients_output_limit_total", "Connections closed because the client left replies or messages unread (--client-output-limit).", n.Slow)
	p.count("redlockd_clients_evicted_total", "Connections closed because clients used too much memory together (--max-memory-clients).", n.Evicted)
	p.gauge("redlockd_clients_memory_bytes", "Memory that counts for --max-memory-clients.", float64(n.Memory))
	p.count("redlockd_commands_total", "Commands read.", n.Commands)
	p.count("redlockd_client_panics_total", "Panics recovered on the clients' side, each of which closed a connection; anything but 0 is a bug.", n.Panics)
}

// states are all states of a master.
var states = []string{"voting", "quarantined", "suspect", "failing", "dialing", "down", "refused", "draining", "drained"}

func (c *collector) masters(p scrape, db int) {
	reports, voting := c.Locks.Reports(db), 0
	for i := range reports {
		m := &reports[i]
		if m.State == "voting" {
			voting++
		}
		c.master(p, m, db)
	}
	database := strconv.Itoa(db)
	p.gauge("redlockd_masters", "Configured masters.", float64(len(reports)), "database", database)
	p.gauge("redlockd_masters_needed", "Masters needed for a quorum.", float64(c.Masters.Quorum()), "database", database)
	p.gauge("redlockd_masters_voting", "Masters whose votes count now.", float64(voting), "database", database)
}

func (c *collector) master(p scrape, m *redlock.MasterReport, db int) {
	which := []string{"master", m.Name, "database", strconv.Itoa(db)}
	with := func(more ...string) []string { return append(which[:4:4], more...) }
	for _, state := range states {
		p.gauge("redlockd_master_state", "1 for the present state of a master.", boolValue(m.State == state), with("state", state)...)
	}
	p.gauge("redlockd_master_state_seconds", "Time since a master's connection was opened or closed.", m.Since.Seconds(), which...)
	p.gauge("redlockd_master_durable", "1 if a master has its acknowledged writes on disk.", boolValue(m.Durable), which...)
	p.gauge("redlockd_master_queued_operations", "Operations that wait for a master's next flush.", float64(m.Queued), which...)
	p.gauge("redlockd_master_in_flight_operations", "Operations sent to a master and not answered.", float64(m.InFlight), which...)
	p.gauge("redlockd_master_pending_releases", "Releases that a master has not acknowledged yet.", float64(m.PendingReleases), which...)
	p.count("redlockd_master_votes_total", "Answers of a master to operations that acquire a key.", m.Votes.Yes, with("vote", "yes")...)
	p.count("redlockd_master_votes_total", "Answers of a master to operations that acquire a key.", m.Votes.No, with("vote", "no")...)
	p.count("redlockd_master_votes_total", "Answers of a master to operations that acquire a key.", m.Votes.Uncounted, with("vote", "uncounted")...)
	bounds, all := make(map[float64]uint64), uint64(0)
	for i, n := range m.RTT.Counts {
		if all += n; i%4 == 3 { // a bound for each doubling: finer ones would be most of the output
			bounds[pool.Bound(i).Seconds()] = all
		}
	}
	p.histogram("redlockd_master_round_trip_seconds", "Round trips of flushes to a master, heartbeats included.", bounds, all, m.RTT.Sum, which)
}

func boolValue(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// dropin exports which lock libraries use this daemon as one Redis.
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
		bounds, all := make(map[float64]uint64), uint64(0)
		for i, n := range f.Times {
			if all += n; i < len(f.Times)-1 { // the last one has no upper bound
				bounds[dropin.Bound(i).Seconds()] = all
			}
		}
		s.histogram("redlockd_dropin_seconds", "Time from such a command to its outcome.", bounds, all, f.Sum, which)
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

// histogram writes one; bounds are the cumulative counts below the end of each bucket.
func (s scrape) histogram(name, help string, bounds map[float64]uint64, all uint64, sum time.Duration, labels []string) {
	desc, values := describe(name, help, labels)
	s.out <- prometheus.MustNewConstHistogram(desc, all, sum.Seconds(), bounds, values...)
}

func describe(name, help string, labels []string) (desc *prometheus.Desc, values []string) {
	var names []string
	for i := 0; i+1 < len(labels); i += 2 {
		names, values = append(names, labels[i]), append(values, labels[i+1])
	}
	return prometheus.NewDesc(name, help, names, nil), values
}
