// Figures: what INFO and /metrics show of the daemon's counters, with their names in both.

package commands

import (
	"fmt"

	"redlockd/pool"
	"redlockd/redlock"
	"redlockd/redlock/slots"
)

// Snapshot holds all counters at about one moment.
type Snapshot struct {
	Clients                           ClientCounts
	Requests                          RequestCounts
	Locks                             redlock.Counters
	Lanes                             pool.Counters
	Events                            redlock.EventCounts
	Traces                            *TraceCounts // nil: nothing is traced
	InFlight, Waiters, Holds, Tracked int
	RefusedLogins                     int64
	UncheckedLogins                   int64 // refused without a look at the password
	LostMessages                      int64 // of the log
	VolatileIDs                       bool
	UnfinishedSlots                   int // of moves whose freeze is over
	Daemons                           int // in the division of the slots; 0 = this daemon is no node of a cluster
}

func (d *Deps) Snapshot() Snapshot {
	m := d.Masters
	s := Snapshot{
		Requests: d.Requests.load(),
		Clients:  d.Clients(), Locks: m.Counters(), Lanes: m.MasterCounters(), Events: m.EventCounts(),
		InFlight: m.InFlight(), Waiters: m.Waiters(), Holds: m.Holds(), Tracked: m.Tracked(), VolatileIDs: d.VolatileIDs,
	}
	s.RefusedLogins, s.UncheckedLogins = d.Users.RefusedLogins()
	if d.LostMessages != nil {
		s.LostMessages = d.LostMessages()
	}
	if d.Traces != nil {
		n := d.Traces()
		s.Traces = &n
	}
	if d.Cluster != nil {
		s.Daemons = len(d.Cluster().Daemons)
	}
	if d.Slots != nil {
		s.UnfinishedSlots = UnfinishedSlots(d.Slots())
	}
	return s
}

// UnfinishedSlots counts the slots that are in no group although their freeze is over.
func UnfinishedSlots(all []slots.Served) (n int) {
	for _, one := range all {
		if one.Frozen && one.Rest == 0 {
			n += one.Last - one.First + 1
		}
	}
	return n
}

type Section string

const (
	SectionClients Section = "Clients"
	SectionStats   Section = "Stats"
	SectionCluster Section = "Cluster"
	SectionLocks   Section = "Locks"
	SectionMasters Section = "Masters"
)

type Figure struct {
	Section Section             // of INFO
	Info    string              // field of INFO; "" = not shown there
	Metric  string              // name in /metrics; "" = not shown there
	Gauge   bool                // false: it only grows
	Help    string              // of the metric
	Value   func(*Snapshot) any // an int, an int64, a text that has no metric; nil = nothing to show
}

// Number is the value as a metric; ok is false if there is none.
func (f *Figure) Number(s *Snapshot) (n float64, ok bool) {
	switch n := f.Value(s).(type) {
	case int:
		return float64(n), f.Metric != ""
	case int64:
		return float64(n), f.Metric != ""
	}
	return 0, false
}

func count(section Section, info, metric, help string, value func(*Snapshot) int64) Figure {
	return Figure{section, info, metric, false, help, func(s *Snapshot) any { return value(s) }}
}

func gauge(section Section, info, metric, help string, value func(*Snapshot) int) Figure {
	return Figure{section, info, metric, true, help, func(s *Snapshot) any { return value(s) }}
}

// traced is a count of spans, if operations are traced.
func traced(info, metric, help string, value func(*TraceCounts) int64) Figure {
	return Figure{SectionStats, info, metric, false, help, func(s *Snapshot) any {
		if s.Traces == nil {
			return nil
		}
		return value(s.Traces)
	}}
}

// Figures are all figures, in the order of INFO. Figures with labels, and those of single
// masters and lock libraries, are not in the table.
var Figures = []Figure{
	gauge(SectionClients, "connected_clients", "redlockd_clients_connected", "Open connections of clients.", func(s *Snapshot) int { return s.Clients.Connected }),
	gauge(SectionClients, "maxclients", "redlockd_clients_limit", "Limit of open connections (--max-clients).", func(s *Snapshot) int { return s.Clients.Limit }),
	gauge(SectionClients, "blocked_clients", "", "", func(s *Snapshot) int { return s.Waiters }),

	count(SectionStats, "total_connections_received", "redlockd_clients_accepted_total", "Connections accepted.", func(s *Snapshot) int64 { return s.Clients.Accepted }),
	count(SectionStats, "total_commands_processed", "redlockd_commands_total", "Commands read.", func(s *Snapshot) int64 { return s.Clients.Commands }),
	count(SectionStats, "rejected_connections", "redlockd_clients_rejected_total", "Connections rejected because of a limit.", func(s *Snapshot) int64 { return s.Clients.Rejected }),
	count(SectionStats, "recovered_panics", "redlockd_client_panics_total", "Panics recovered on the clients' side, each of which closed a connection; anything but 0 is a bug.", func(s *Snapshot) int64 { return s.Clients.Panics }),
	count(SectionStats, "acl_access_denied_auth", "redlockd_logins_refused_total", "Logins refused.", func(s *Snapshot) int64 { return s.RefusedLogins }),
	count(SectionStats, "throttled_auths", "redlockd_logins_throttled_total", "Logins refused without a look at the password, after too many wrong ones.", func(s *Snapshot) int64 { return s.UncheckedLogins }),
	count(SectionStats, "client_output_buffer_limit_disconnections", "redlockd_clients_output_limit_total", "Connections closed because the client left replies or messages unread (--client-output-limit).", func(s *Snapshot) int64 { return s.Clients.Slow }),
	count(SectionStats, "evicted_clients", "redlockd_clients_evicted_total", "Connections closed because clients used too much memory together (--max-memory-clients).", func(s *Snapshot) int64 { return s.Clients.Evicted }),
	count(SectionStats, "events_delivered", "redlockd_events_delivered_total", "Events of locks delivered to subscribers.", func(s *Snapshot) int64 { return s.Events.Delivered }),
	count(SectionStats, "events_dropped", "redlockd_events_dropped_total", "Events not delivered because a subscriber was too slow.", func(s *Snapshot) int64 { return s.Events.Dropped }),
	count(SectionStats, "events_sent", "redlockd_events_sent_total", "Events sent to other daemons.", func(s *Snapshot) int64 { return s.Events.Sent }),
	count(SectionStats, "events_received", "redlockd_events_received_total", "Events received from other daemons.", func(s *Snapshot) int64 { return s.Events.Received }),
	count(SectionStats, "events_missed", "redlockd_events_missed_total", "Events of other daemons that did not arrive.", func(s *Snapshot) int64 { return s.Events.Missed }),
	count(SectionStats, "log_messages_lost", "redlockd_log_messages_lost_total", "Lines of the log that could not be written, or not fast enough.", func(s *Snapshot) int64 { return s.LostMessages }),
	traced("traces_sent", "redlockd_traces_sent_total", "Spans of operations that the collector accepted.", func(n *TraceCounts) int64 { return n.Sent }),
	traced("traces_dropped", "redlockd_traces_dropped_total", "Spans that were lost because the collector did not accept them.", func(n *TraceCounts) int64 { return n.Dropped }),
	gauge(SectionStats, "", "redlockd_clients_memory_bytes", "Memory that counts for --max-memory-clients.", func(s *Snapshot) int { return s.Clients.Memory }),

	{SectionCluster, "cluster_daemons", "redlockd_cluster_daemons", true, "Daemons among which the slots are divided, this one included (--cluster-announce).", func(s *Snapshot) any {
		if s.Daemons == 0 {
			return nil
		}
		return s.Daemons
	}},

	gauge(SectionCluster, "", "redlockd_slots_unfinished", "Slots that have left a group of masters and are in none although the freeze is over: nothing is granted in them until the move is finished (redlockd slots).", func(s *Snapshot) int { return s.UnfinishedSlots }),

	count(SectionLocks, "locks_acquired", "redlockd_locks_acquired_total", "Grants, of each group of masters.", func(s *Snapshot) int64 { return s.Locks.Acquired }),
	count(SectionLocks, "locks_refused", "redlockd_locks_refused_total", "Lock requests of clients that were refused because another client held the key.", func(s *Snapshot) int64 { return s.Requests.Refused }),
	count(SectionLocks, "locks_no_quorum", "redlockd_no_quorum_total", "Requests of clients that could not be decided (NOQUORUM), those that only read left out.", func(s *Snapshot) int64 { return s.Requests.NoQuorum }),
	count(SectionLocks, "locks_expired", "redlockd_locks_expired_total", "Requests of clients that were decided too late (EXPIRED).", func(s *Snapshot) int64 { return s.Requests.Expired }),
	count(SectionLocks, "ballots_refused", "redlockd_ballots_refused_total", "Ballots refused because another client held the key. A request that waits makes several.", func(s *Snapshot) int64 { return s.Locks.Refused }),
	count(SectionLocks, "ballots_undecided", "redlockd_ballots_undecided_total", "Ballots and readings that too few masters answered, those of waiters, renewals and the page too.", func(s *Snapshot) int64 { return s.Locks.NoQuorum }),
	count(SectionLocks, "ballots_expired", "redlockd_ballots_expired_total", "Ballots with a quorum that came too late.", func(s *Snapshot) int64 { return s.Locks.Expired }),
	count(SectionLocks, "locks_split", "redlockd_locks_split_total", "Ballots without a quorum for any client.", func(s *Snapshot) int64 { return s.Locks.Split }),
	count(SectionLocks, "locks_released", "redlockd_locks_released_total", "Releases.", func(s *Snapshot) int64 { return s.Locks.Released }),
	count(SectionLocks, "locks_extended", "redlockd_locks_extended_total", "Extensions.", func(s *Snapshot) int64 { return s.Locks.Extended }),
	count(SectionLocks, "locks_given_back", "redlockd_locks_given_back_total", "Grants released because the client had gone.", func(s *Snapshot) int64 { return s.Locks.GivenBack }),
	gauge(SectionLocks, "locks_held", "redlockd_locks_held", "Locks that this daemon granted and that run, as far as it knows: not released through it, and not past their end. Above 1024 it is an estimate from so many.", func(s *Snapshot) int { return s.Locks.Held }),
	gauge(SectionLocks, "waiters", "redlockd_waiters", "Requests that wait for a lock.", func(s *Snapshot) int { return s.Waiters }),
	gauge(SectionLocks, "holds", "redlockd_holds", "Leases that the daemon renews (HOLD).", func(s *Snapshot) int { return s.Holds }),
	gauge(SectionLocks, "tracked_keys", "redlockd_tracked_keys", "Keys that clients track (CLIENT TRACKING).", func(s *Snapshot) int { return s.Tracked }),
	count(SectionLocks, "holds_lost", "redlockd_holds_lost_total", "Leases under renewal that were lost.", func(s *Snapshot) int64 { return s.Locks.HoldsLost }),
	count(SectionLocks, "short_leases_over", "redlockd_short_leases_over_total", "Leases of less than a second that were over before their release: often seconds where milliseconds are meant.", func(s *Snapshot) int64 { return s.Locks.ShortOver }),
	count(SectionLocks, "overdue", "redlockd_overdue_total", "Locks that were held for their longest time (--max-hold, MAXHOLD) and are not extended any more.", func(s *Snapshot) int64 { return s.Locks.Overdue }),
	count(SectionLocks, "copies_undone", "redlockd_copies_undone_total", "Copies of failed attempts released on single masters.", func(s *Snapshot) int64 { return s.Locks.Undone }),
	count(SectionLocks, "copies_late", "redlockd_copies_late_total", "Copies made after the decision and released.", func(s *Snapshot) int64 { return s.Locks.LateGrants }),
	count(SectionLocks, "copies_repaired", "redlockd_copies_repaired_total", "Copies made again on masters that had lost an extended lease.", func(s *Snapshot) int64 { return s.Locks.Repaired }),
	count(SectionLocks, "second_seals", "redlockd_fence_second_seals_total", "Grants that needed one more seal for their fence.", func(s *Snapshot) int64 { return s.Locks.SecondSeals }),
	count(SectionLocks, "third_seals", "redlockd_fence_third_seals_total", "Grants that needed yet another seal.", func(s *Snapshot) int64 { return s.Locks.ThirdSeals }),
	count(SectionLocks, "ids", "redlockd_ids_total", "Ids issued.", func(s *Snapshot) int64 { return s.Locks.IDs }),
	count(SectionLocks, "id_rounds", "redlockd_id_rounds_total", "Proposals to the masters for ids.", func(s *Snapshot) int64 { return s.Locks.IDRounds }),
	{SectionLocks, "ids_durability", "", true, "", func(s *Snapshot) any { // on: a crash of the masters repeats no id
		if s.VolatileIDs {
			return "off"
		}
		return "on"
	}},
	count(SectionLocks, "work_started", "redlockd_work_started_total", "Attempts at work granted.", func(s *Snapshot) int64 { return s.Locks.WorkStarted }),
	count(SectionLocks, "work_done", "redlockd_work_done_total", "Pieces of work marked done.", func(s *Snapshot) int64 { return s.Locks.WorkDone }),
	gauge(SectionLocks, "", "redlockd_operations_in_flight", "Operations that have not been answered yet.", func(s *Snapshot) int { return s.InFlight }),

	count(SectionMasters, "flushes", "redlockd_flushes_total", "Round trips to masters.", func(s *Snapshot) int64 { return s.Lanes.Flushes }),
	count(SectionMasters, "flushed_operations", "redlockd_flushed_operations_total", "Operations in them.", func(s *Snapshot) int64 { return s.Lanes.Commands }),
	{SectionMasters, "operations_per_flush", "", true, "", func(s *Snapshot) any {
		return fmt.Sprintf("%.2f", float64(s.Lanes.Commands)/float64(max(1, s.Lanes.Flushes)))
	}},
	count(SectionMasters, "seals", "redlockd_seals_total", "Seals sent.", func(s *Snapshot) int64 { return s.Lanes.Seals }),
	count(SectionMasters, "void_seals", "", "", func(s *Snapshot) int64 { return s.Lanes.VoidSeals }), // by reason in /metrics
	count(SectionMasters, "late_flushes", "redlockd_late_flushes_total", "Flushes that a master executed after the master timeout.", func(s *Snapshot) int64 { return s.Lanes.LateFlushes }),
	count(SectionMasters, "late_reads", "redlockd_late_reads_total", "Answers in time that the daemon read after the master timeout: it did not run.", func(s *Snapshot) int64 { return s.Lanes.LateReads }),
	count(SectionMasters, "breakers_opened", "redlockd_breaker_opened_total", "Times the daemon stopped sending to a master because it did not answer.", func(s *Snapshot) int64 { return s.Lanes.BreakerOpened }),
	count(SectionMasters, "dials", "redlockd_dials_total", "Connections to masters tried.", func(s *Snapshot) int64 { return s.Lanes.Dials }),
	count(SectionMasters, "admissions", "redlockd_admissions_total", "Connections to masters that may vote.", func(s *Snapshot) int64 { return s.Lanes.Admissions }),
	count(SectionMasters, "new_incarnations", "redlockd_new_incarnations_total", "Admissions of a master as a new incarnation: its memory was not unbroken.", func(s *Snapshot) int64 { return s.Lanes.NewIncarnations }),
	count(SectionMasters, "incarnations_invalidated", "redlockd_incarnations_invalidated_total", "Incarnations invalidated because a clock stepped, acknowledged writes were lost or keys may have been evicted.", func(s *Snapshot) int64 { return s.Lanes.Invalidated }),
	count(SectionMasters, "clock_steps_tolerated", "redlockd_clock_steps_tolerated_total", "Steps of masters' clocks that were too small to invalidate an incarnation.", func(s *Snapshot) int64 { return s.Lanes.StepsTolerated }),
	count(SectionMasters, "lane_panics", "redlockd_panics_total", "Panics recovered in the lanes; anything but 0 is a bug.", func(s *Snapshot) int64 { return s.Lanes.Panics }),
}
