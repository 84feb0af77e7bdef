// INFO: statistics of this daemon and its masters. Clients read it while they
// connect: it must be a string, begin with redis_version and present a
// standalone master that is not loading.

package conn

import (
	"fmt"
	"os"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"sync"
	"time"

	"redlockd/commands"
	"redlockd/commands/arg"
	"redlockd/pool"
	"redlockd/redlock"
)

type section struct {
	name  string
	write func(*infoPage)
}

// sections in the order in which they are shown.
func (h *handlers) sections() []section {
	sections := []section{
		{"Server", h.infoServer},
		{"Clients", figures(commands.SectionClients)},
		{"Memory", h.infoMemory},
		{"Persistence", func(p *infoPage) {
			p.line("loading", 0)
			p.line("aof_enabled", 0)
		}},
		{"Stats", figures(commands.SectionStats)},
		{"Replication", func(p *infoPage) {
			p.line("role", "master")
			p.line("connected_slaves", 0)
		}},
		{"Cluster", func(p *infoPage) {
			p.line("cluster_enabled", commands.Bool(h.deps.Cluster != nil).Int)
			figures(commands.SectionCluster)(p)
		}},
	}
	if h.deps.Slots != nil {
		sections = append(sections, section{"Slots", h.infoSlots})
	}
	return append(sections, section{"Dropin", h.infoDropin}, section{"Locks", figures(commands.SectionLocks)}, section{"Masters", h.infoMasters})
}

// info answers the named sections in any case, or all of them. Unknown names
// are passed over, as Redis does.
func (h *handlers) info(c *commands.Call) error {
	page := infoPage{db: c.Client.DB, snapshot: sync.OnceValue(h.deps.Snapshot)}
	for _, s := range h.sections() {
		if wantsSection(c.Args[1:], strings.ToUpper(s.name)) {
			page.heading(s.name)
			s.write(&page)
		}
	}
	return c.Reply(commands.Bulk(page.text.String()))
}

func wantsSection(names []string, name string) bool {
	return len(names) == 0 || slices.ContainsFunc(names, func(a string) bool {
		return arg.IsWord(a, name) || arg.IsWord(a, "DEFAULT") || arg.IsWord(a, "ALL") || arg.IsWord(a, "EVERYTHING")
	})
}

// infoPage is text in lines that end with CR and LF.
type infoPage struct {
	text     strings.Builder
	db       int                      // of the client
	snapshot func() commands.Snapshot // one for all sections
}

func (p *infoPage) heading(name string) {
	if p.text.Len() > 0 {
		p.text.WriteString("\r\n")
	}
	p.text.WriteString("# " + name + "\r\n")
}

func (p *infoPage) line(field string, value any) {
	fmt.Fprintf(&p.text, "%s:%v\r\n", field, value)
}

func figures(section commands.Section) func(*infoPage) {
	return func(p *infoPage) {
		snapshot := p.snapshot()
		for _, f := range commands.Figures {
			if f.Section != section || f.Info == "" {
				continue
			}
			if value := f.Value(&snapshot); value != nil {
				p.line(f.Info, value)
			}
		}
	}
}

const compatWarning = "compat-test is on: any client may overwrite any lock and empty the masters; never in production"

func (h *handlers) infoServer(p *infoPage) {
	up := int64(time.Since(h.deps.Start) / time.Second)
	p.line("redis_version", advertisedVersion) // first: redis-cli looks for it there
	p.line("redlockd_version", h.deps.Version)
	p.line("redis_mode", clusterNode(h.deps.Cluster).mode())
	p.line("os", runtime.GOOS+" "+runtime.GOARCH)
	p.line("arch_bits", 32<<(^uint(0)>>63))
	p.line("process_id", os.Getpid())
	p.line("run_id", h.deps.RunID)
	p.line("tcp_port", h.deps.Port)
	if h.deps.CompatTest {
		p.line("redlockd_warning", compatWarning)
	} else if h.deps.Warning != "" {
		p.line("redlockd_warning", h.deps.Warning)
	}
	p.line("server_time_usec", time.Now().UnixMicro())
	p.line("uptime_in_seconds", up)
	p.line("uptime_in_days", up/86400)
}

// infoMemory reads one counter of the runtime; runtime.ReadMemStats would stop
// the world for every client that polls INFO.
func (h *handlers) infoMemory(p *infoPage) {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() == metrics.KindUint64 {
		p.line("used_memory", sample[0].Value.Uint64())
	}
	p.line("mem_clients_normal", h.deps.Clients().Memory) // Redis' name
	p.line("number_of_cached_scripts", h.deps.DropinStats.CachedScripts.Load())
}

func (h *handlers) infoDropin(p *infoPage) {
	for _, f := range h.deps.DropinStats.List() {
		name := strings.NewReplacer(" ", "_", ":", "_").Replace(f.Library + "_" + f.Operation)
		p.line("dropin_"+name, fmt.Sprintf("calls=%d,yes=%d,no=%d,undecided=%d,p50_us=%d,p99_us=%d",
			f.Count(), f.Yes, f.No, f.Undecided, f.Quantile(.5).Microseconds(), f.Quantile(.99).Microseconds()))
	}
}

// infoMasters shows the masters as the lanes of this client's database see them.
func (h *handlers) infoMasters(p *infoPage) {
	masters := h.deps.Masters.Reports(p.db)
	p.line("masters", len(masters))
	p.line("masters_voting", voting(masters))
	p.line("configuration_epoch", pool.Epoch(masters))
	infoGroups(p, masters)
	figures(commands.SectionMasters)(p)
	for i := range masters {
		p.line(fmt.Sprintf("master%d", i), masterFields(&masters[i]))
	}
	daemons := pool.Daemons(masters)
	p.line("daemons", len(daemons))
	p.line("daemons_stale", len(pool.StaleDaemons(masters)))
	for i, d := range daemons {
		p.line(fmt.Sprintf("daemon%d", i), fmt.Sprintf("name=%s,address=%s,epoch=%d", commands.Field(d.Name), commands.Field(d.Address), d.Epoch))
	}
}

// infoSlots shows the map of the groups of masters, each range in a line of name=value pairs.
func (h *handlers) infoSlots(p *infoPage) {
	all := h.deps.Slots()
	p.line("slot_ranges", len(all))
	p.line("unfinished_slots", commands.UnfinishedSlots(all))
	for i, s := range all {
		line := fmt.Sprintf("slots=%s,group=%s,map=%d,operations=%d", s.Range, commands.Field(s.Group), s.Version, s.Operations)
		if s.Frozen {
			line += fmt.Sprintf(",to=%s,rest_ms=%d", commands.Field(s.To), s.Rest.Milliseconds())
		}
		p.line(fmt.Sprintf("slots%d", i), line)
	}
}

// infoGroups shows several groups, each in a line of name=value pairs.
func infoGroups(p *infoPage, masters []redlock.MasterReport) {
	for i, group := range pool.ByGroup(masters) {
		if name := group[0].Group; name != "" {
			p.line(fmt.Sprintf("group%d", i), fmt.Sprintf("name=%s,masters=%d,voting=%d,needed=%d,epoch=%d",
				commands.Field(name), len(group), voting(group), pool.Quorum(len(group)), pool.Epoch(group)))
		}
	}
}

func voting(masters []redlock.MasterReport) (n int) {
	for i := range masters {
		if masters[i].State == "voting" {
			n++
		}
	}
	return n
}

// masterFields is one master in a line of name=value pairs.
func masterFields(m *redlock.MasterReport) string {
	group := ""
	if m.Group != "" {
		group = "group=" + commands.Field(m.Group) + ","
	}
	return group + fmt.Sprintf("name=%s,address=%s,state=%s,since_ms=%d,epoch=%d,run_id=%s,version=%s,durable=%t,queued=%d,pending_releases=%d,detail=%s",
		commands.Field(m.Name), commands.Field(m.Address), commands.Field(m.State), m.Since.Milliseconds(), m.Epoch,
		commands.Field(m.RunID), commands.Field(m.Version), m.Durable, m.Queued, m.PendingReleases, commands.Field(m.Detail))
}
