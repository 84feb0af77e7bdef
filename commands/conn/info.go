// INFO: statistics of this daemon and its masters. Clients read it while they
// connect: it must be a string, begin with redis_version and present a
// standalone master that is not loading.

package conn

import (
	"fmt"
	"os"
	"runtime"
	"runtime/metrics"
	"strings"
	"time"

	"redlockd/commands"
	"redlockd/commands/arg"
	"redlockd/pool"
	"redlockd/redlock"
)

// section writes the lines of one heading.
type section struct {
	name  string
	write func(*infoPage, *handlers, *commands.Call)
}

// sections in the order in which they are shown.
func (h *handlers) sections() []section {
	sections := []section{
		{"Server", infoServer},
		{"Clients", infoClients},
		{"Memory", infoMemory},
		{"Persistence", infoPersistence},
		{"Stats", infoStats},
		{"Replication", infoReplication},
		{"Cluster", infoCluster},
	}
	if h.deps.RedisCompat != nil {
		sections = append(sections, section{"Dropin", infoDropin})
	}
	if h.deps.Masters != nil {
		sections = append(sections, section{"Locks", infoLocks}, section{"Masters", infoMasters})
	}
	return sections
}

// info answers the named sections in any case, or all of them. Unknown names
// are passed over, as Redis does.
func (h *handlers) info(c *commands.Call) error {
	var page infoPage
	for _, s := range h.sections() {
		if wantsSection(c.Args[1:], strings.ToUpper(s.name)) {
			page.heading(s.name)
			s.write(&page, h, c)
		}
	}
	c.Reply(commands.Bulk(page.text.String()))
	return nil
}

func wantsSection(names []string, name string) bool {
	for _, a := range names {
		if arg.IsWord(a, name) || arg.IsWord(a, "DEFAULT") || arg.IsWord(a, "ALL") || arg.IsWord(a, "EVERYTHING") {
			return true
		}
	}
	return len(names) == 0
}

// infoPage is text in lines that end with CR and LF.
type infoPage struct{ text strings.Builder }

func (p *infoPage) heading(name string) {
	if p.text.Len() > 0 {
		p.text.WriteString("\r\n")
	}
	p.text.WriteString("# " + name + "\r\n")
}

func (p *infoPage) line(field string, value any) {
	fmt.Fprintf(&p.text, "%s:%v\r\n", field, value)
}

// compatWarning is shown by INFO.
const compatWarning = "compat-test is on: any client may overwrite any lock and empty the masters; never in production"

func infoServer(p *infoPage, t *handlers, _ *commands.Call) {
	up := int64(time.Since(t.deps.Start) / time.Second)
	p.line("redis_version", advertisedVersion) // first: redis-cli looks for it there
	p.line("redlockd_version", t.deps.Version)
	p.line("redis_mode", "standalone")
	p.line("os", runtime.GOOS+" "+runtime.GOARCH)
	p.line("arch_bits", 32<<(^uint(0)>>63))
	p.line("process_id", os.Getpid())
	p.line("run_id", t.deps.RunID)
	p.line("tcp_port", t.deps.Port)
	if t.deps.CompatTest {
		p.line("redlockd_warning", compatWarning)
	}
	p.line("server_time_usec", time.Now().UnixMicro())
	p.line("uptime_in_seconds", up)
	p.line("uptime_in_days", up/86400)
}

func infoClients(p *infoPage, t *handlers, _ *commands.Call) {
	clients := t.deps.Clients()
	p.line("connected_clients", clients.Connected)
	p.line("maxclients", clients.Limit)
	waiters := 0
	if t.deps.Masters != nil {
		waiters = t.deps.Masters.Waiters()
	}
	p.line("blocked_clients", waiters)
}

// infoMemory reads one counter of the runtime; runtime.ReadMemStats would stop
// the world for every client that polls INFO.
func infoMemory(p *infoPage, t *handlers, _ *commands.Call) {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() == metrics.KindUint64 {
		p.line("used_memory", sample[0].Value.Uint64())
	}
	p.line("mem_clients_normal", t.deps.Clients().Memory) // Redis' name
	p.line("number_of_cached_scripts", t.deps.DropinStats.CachedScripts.Load())
}

func infoPersistence(p *infoPage, _ *handlers, _ *commands.Call) {
	p.line("loading", 0)
	p.line("aof_enabled", 0)
}

func infoStats(p *infoPage, t *handlers, _ *commands.Call) {
	clients := t.deps.Clients()
	p.line("total_connections_received", clients.Accepted)
	p.line("total_commands_processed", clients.Commands)
	p.line("rejected_connections", clients.Rejected)
	p.line("recovered_panics", clients.Panics)
	refused, unchecked := t.deps.Users.RefusedLogins()
	p.line("acl_access_denied_auth", refused) // Redis' name since 7.2
	p.line("throttled_auths", unchecked)
	p.line("client_output_buffer_limit_disconnections", clients.Slow) // Redis' name
	p.line("evicted_clients", clients.Evicted)                        // Redis' name
	if t.deps.Masters != nil {
		n := t.deps.Masters.EventCounts()
		p.line("events_delivered", n.Delivered)
		p.line("events_dropped", n.Dropped)
		p.line("events_sent", n.Sent)
		p.line("events_received", n.Received)
		p.line("events_missed", n.Missed)
	}
	if t.deps.Traces != nil {
		n := t.deps.Traces()
		p.line("traces_sent", n.Sent)
		p.line("traces_dropped", n.Dropped)
	}
}

func infoReplication(p *infoPage, _ *handlers, _ *commands.Call) {
	p.line("role", "master")
	p.line("connected_slaves", 0)
}

func infoCluster(p *infoPage, _ *handlers, _ *commands.Call) { p.line("cluster_enabled", 0) }

// infoDropin shows a line for each.
func infoDropin(p *infoPage, t *handlers, _ *commands.Call) {
	for _, f := range t.deps.DropinStats.List() {
		name := strings.Map(func(r rune) rune {
			if r == ' ' || r == ':' {
				return '_'
			}
			return r
		}, f.Library+"_"+f.Operation)
		p.line("dropin_"+name, fmt.Sprintf("calls=%d,yes=%d,no=%d,undecided=%d,p50_us=%d,p99_us=%d",
			f.Count(), f.Yes, f.No, f.Undecided, f.Quantile(.5).Microseconds(), f.Quantile(.99).Microseconds()))
	}
}

func infoLocks(p *infoPage, t *handlers, _ *commands.Call) {
	n := t.deps.Masters.Counters()
	p.line("locks_acquired", n.Acquired)
	p.line("locks_refused", n.Refused)
	p.line("locks_no_quorum", n.NoQuorum)
	p.line("locks_expired", n.Expired)
	p.line("locks_split", n.Split)
	p.line("locks_released", n.Released)
	p.line("locks_extended", n.Extended)
	p.line("locks_given_back", n.GivenBack)
	p.line("waiters", t.deps.Masters.Waiters())
	p.line("holds", t.deps.Masters.Holds())
	p.line("holds_lost", n.HoldsLost)
	p.line("copies_undone", n.Undone)
	p.line("copies_late", n.LateGrants)
	p.line("copies_repaired", n.Repaired)
	p.line("second_seals", n.SecondSeals)
	p.line("third_seals", n.ThirdSeals)
	p.line("ids", n.IDs)
	p.line("id_rounds", n.IDRounds)
	p.line("ids_durability", idsDurability(t.deps.VolatileIDs))
	p.line("work_started", n.WorkStarted)
	p.line("work_done", n.WorkDone)
}

// idsDurability is on as long as a crash of the masters repeats no id.
func idsDurability(volatile bool) string {
	if volatile {
		return "off"
	}
	return "on"
}

// infoMasters shows the masters as the lanes of this client's database see them.
func infoMasters(p *infoPage, t *handlers, c *commands.Call) {
	masters, voting := t.deps.Masters.Reports(c.Client.DB), 0
	for i := range masters {
		if masters[i].State == "voting" {
			voting++
		}
	}
	p.line("masters", len(masters))
	p.line("masters_voting", voting)
	infoLanes(p, t.deps.Masters.MasterCounters())
	for i := range masters {
		p.line(fmt.Sprintf("master%d", i), masterFields(&masters[i].Status))
	}
}

// infoLanes shows what all lanes together did since the start.
func infoLanes(p *infoPage, n pool.Counters) {
	p.line("flushes", n.Flushes)
	p.line("flushed_operations", n.Commands)
	p.line("operations_per_flush", fmt.Sprintf("%.2f", float64(n.Commands)/float64(max(1, n.Flushes))))
	p.line("seals", n.Seals)
	p.line("void_seals", n.VoidSeals)
	p.line("late_flushes", n.LateFlushes)
	p.line("breakers_opened", n.BreakerOpened)
	p.line("dials", n.Dials)
	p.line("admissions", n.Admissions)
	p.line("new_incarnations", n.NewIncarnations)
	p.line("incarnations_invalidated", n.Invalidated)
	p.line("clock_steps_tolerated", n.StepsTolerated)
	p.line("lane_panics", n.Panics)
}

// masterFields is one master in a line of name=value pairs.
func masterFields(m *redlock.MasterStatus) string {
	return fmt.Sprintf("name=%s,address=%s,state=%s,since_ms=%d,run_id=%s,version=%s,durable=%t,queued=%d,pending_releases=%d,detail=%s",
		commands.Field(m.Name), commands.Field(m.Address), commands.Field(m.State), m.Since.Milliseconds(),
		commands.Field(m.RunID), commands.Field(m.Version), m.Durable, m.Queued, m.PendingReleases, commands.Field(m.Detail))
}
