// Check: whether servers are fit to be the masters of a group. Operators run it before
// anything depends on the servers. It leaves them as they were; only with performance
// it writes, to a key that no lock can have, see performance.go.

package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"redlockd/pool"
	"redlockd/pool/admission"
	"redlockd/pool/clock"
	"redlockd/pool/wire"
)

const (
	// samples is how many round trips are measured.
	samples = 20
	// nearTimeout is the part of the master timeout from which a round trip causes a
	// warning: flushes take longer than a single command.
	nearTimeout = 4
)

// ErrUnfit is wrapped by the error of Check if a master must not vote.
var ErrUnfit = errors.New("not fit")

// finding is the result of the checks of one server.
type finding struct {
	master   wire.Master
	info     admission.ServerInfo
	role     string
	policy   string
	offset   int64 // µs off the median
	rtt      time.Duration
	seal     string
	stands   []sealRecord       // by database, as far as it was read
	cluster  bool               // a node of a Redis Cluster
	silent   bool               // it cannot be reached
	carries  bool               // the settings of this group
	unlisted bool               // it is not in the list that daemons use
	daemons  []admission.Daemon // that it has admitted
	writes   []time.Duration
	problems []string // reasons why it must not vote
	warnings []string
}

func (f *finding) problem(format string, args ...any) {
	f.problems = append(f.problems, fmt.Sprintf(format, args...))
}

// Check writes a table of the masters to out, and their problems. With performance it also times
// writes, and reports which master timeout fits.
func Check(ctx context.Context, o pool.Options, performance bool, out io.Writer) error {
	g, err := newGroup(o, stepTimeout)
	if err != nil {
		return err
	}
	all := g.inspectAll(ctx, o.Masters, performance)
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("check: interrupted; it changes nothing, so run it again when you like (%w)", err)
	}
	all = append(all, g.compareSettings(ctx, all, performance, out)...)
	compare(all)
	findLonely(all)
	if len(all)%2 == 0 && !slices.ContainsFunc(all, func(f *finding) bool { return f.seal != newSeal }) {
		all[0].problem("%v", evenNumber(len(all)))
	}
	writeTable(all, out)
	var daemons []admission.Daemon
	for _, f := range all {
		daemons = admission.MergeDaemons(daemons, f.daemons...)
	}
	writeDaemons(daemons, out)
	if performance {
		g.reportWrites(all, out)
	}
	return summarize(all, out)
}

// inspectAll does so at once: a silent master costs its timeout once.
func (g *group) inspectAll(ctx context.Context, masters []wire.Master, performance bool) []*finding {
	all := make([]*finding, len(masters))
	var checks sync.WaitGroup
	for i, m := range masters {
		checks.Go(func() { all[i] = g.inspect(ctx, m, performance) })
	}
	checks.Wait()
	return all
}

// evenNumber tells why a new group has no even number of masters.
func evenNumber(n int) error {
	return fmt.Errorf("%d masters survive the loss of %d, as %d do, and need one answer more for every decision: a new group has an odd number; use %d or %d", n, (n-1)/2, n-1, n-1, n+1)
}

// inspect runs all checks that concern one server alone.
func (g *group) inspect(ctx context.Context, m wire.Master, performance bool) *finding {
	f := &finding{master: m}
	link, err := g.dial(ctx, m, 0)
	if err != nil {
		f.silent = true
		f.problem("cannot be reached: %v", err)
		return f
	}
	defer link.Close()
	f.info, err = admission.Probe(link, g.options.Clock)
	if err != nil {
		f.problem("%v", err)
	}
	if f.info.Redlockd {
		return f // nothing else of it is a master's
	}
	g.measure(f, link)
	g.permissions(ctx, f, link)
	if f.cluster { // it refuses to select databases, and keys of slots that it does not serve
		return f
	}
	g.settings(f, link)
	g.write(f, link)
	if f.daemons, err = admission.Daemons(link, g.options.Group); err != nil && f.info.RunID != "" {
		f.warnings = append(f.warnings, fmt.Sprintf("does not list its connections (%v), so the daemons that use it are unknown: allow its user client|list", err))
	}
	if performance {
		g.timeWrites(f, link)
	}
	return f
}

// measure reads INFO, and how long an answer takes.
func (g *group) measure(f *finding, link wire.Link) {
	reply, err := wire.AskOne(link, "INFO")
	if err != nil {
		return // the probe has added the reason
	}
	f.role, f.policy, f.cluster = wire.InfoField(reply.Str, "role"), wire.InfoField(reply.Str, "maxmemory_policy"), wire.InfoField(reply.Str, "cluster_enabled") == "1"
	if offset := wire.InfoField(reply.Str, "second_repl_offset"); f.role == "master" && offset != "-1" {
		f.problem("is a promoted replica (second_repl_offset %s): it may lack the last writes of its former master; restart it empty", offset)
	}
	if f.info.Volatile != "" && f.info.RunID != "" {
		f.warnings = append(f.warnings, f.info.Volatile+": it loses its vote for a while when it restarts, and gives no ids; set appendonly yes, appendfsync always, no-appendfsync-on-rewrite no")
	}
	var times []time.Duration
	for range samples {
		sent := g.options.Clock.Now()
		if _, err := wire.AskOne(link, "PING"); err != nil {
			f.problem("cut the connection")
			return
		}
		times = append(times, g.options.Clock.Now()-sent)
	}
	slices.Sort(times)
	f.rtt = times[samples/2]
	switch limit := g.options.MasterTimeout; {
	case f.rtt >= limit:
		f.problem("answers after %s, and --master-timeout is %s: no answer would count", f.rtt.Round(time.Microsecond), limit)
	case f.rtt >= limit/nearTimeout:
		f.warnings = append(f.warnings, fmt.Sprintf("answers after %s, near to --master-timeout %s: choose several times the round trip", f.rtt.Round(time.Microsecond), limit))
	}
}

// settings compares the settings that other daemons stored on the server with our own.
func (g *group) settings(f *finding, link wire.Link) {
	for db := range g.options.Databases {
		replies, err := wire.Ask(link, wire.Words("SELECT", strconv.Itoa(db)),
			wire.Words("ZRANGE", g.sealKey(), "0", "-1"), wire.Words("ZSCORE", pool.RecordsKey(&g.options), ""),
			wire.Words("HGET", admission.ConfigurationKey, g.options.Group), wire.Words("HGET", admission.ConfigurationKey, g.options.Group+"\nprocesses"))
		if err != nil {
			return
		}
		if err := replies[0].Err; err != nil {
			f.problem("has no database %d (%v): --databases is %d", db, err, g.options.Databases)
			return
		}
		if replies[1].Begins("WRONGTYPE") {
			f.problem("database %d: %s holds something that redlockd did not write: use --key-prefix, or delete it", db, g.sealKey())
			return
		}
		if err := replies[1].Err; err != nil {
			f.problem("database %d: %s cannot be read: %v", db, g.sealKey(), err)
			return
		}
		if replies[2].Begins("WRONGTYPE") {
			f.warnings = append(f.warnings, fmt.Sprintf("database %d: %s holds something that redlockd did not write, so what the master remembers of the others is lost: use --key-prefix, or delete it", db, pool.RecordsKey(&g.options)))
		}
		record := sealRecord{stored: admission.ParseStored(replies[3].Str)}
		if len(replies[1].Items) > 0 {
			record.identity = replies[1].Items[0].Str
		}
		record.older = admission.MayBeOlder(record.identity, replies[4].Str, f.info.RunID, f.info.Durable(g.options.AssumeDurable))
		f.stands = append(f.stands, record)
	}
}

// write finds a master that refuses writes: it is full, misconfigured, or needs replicas. The command
// is one that a full master refuses too, and changes nothing: XX adds no member.
func (g *group) write(f *finding, link wire.Link) {
	replies, err := wire.Ask(link, wire.Words("SELECT", "0"), wire.Words("ZADD", g.sealKey(), "XX", "0", ""))
	if err != nil || f.role != "master" {
		return // the replica has its own line
	}
	for _, code := range []string{"OOM", "MISCONF", "NOREPLICAS", "READONLY"} {
		if replies[1].Begins(code) {
			f.problem("refuses writes, so its votes do not count: %v", replies[1].Err)
		}
	}
}

// compareSettings compares what stands on the servers with the options, but for the list and for slots
// that have moved: daemons follow those. It returns the masters of the list that daemons use which the
// options lack.
func (g *group) compareSettings(ctx context.Context, all []*finding, performance bool, out io.Writer) (more []*finding) {
	c := &change{group: g}
	for _, f := range all {
		c.all = append(c.all, &candidate{master: f.master, seals: f.stands})
	}
	newest := c.newest()
	g.keep(newest, out)
	used, here := newest.Now, g.options.Configuration(0)
	if newest.Now != nil && !newest.InForce && newest.Former != nil {
		fmt.Fprintf(out, "a change to epoch %d is unfinished, and nothing may be granted until it is: %s\n", newest.Now.Epoch, g.finishCommand(newest))
		used = newest.Former
	}
	if used == nil || !here.SameSettings(used) || !here.SameSlots(used) || here.SameMasters(used) {
		used = here
	} else {
		fmt.Fprintf(out, "your list differs; daemons use %s since epoch %d: write that list into the files of all daemons. To change the list: redlockd masters\n", g.options.Names(used), used.Epoch)
		var masters []wire.Master
		for _, m := range g.optionsOf(used).Masters {
			if !has(here, m.Name) {
				masters = append(masters, g.withLogin(m))
			}
		}
		more = g.inspectAll(ctx, masters, performance)
	}
	present := g.optionsOf(used)
	for _, f := range slices.Concat(all, more) {
		(&candidate{master: f.master, seals: f.stands}).findOlder(g)
		f.unlisted = !has(used, f.master.Name)
		for db, s := range f.stands {
			switch {
			case s.older:
				f.seal = olderSeal
			case s.identity == "" || f.seal == olderSeal:
			case newest.Now != nil && !newest.InForce && s.mark() == newest.Now.Mark():
				if f.carries = true; f.seal != unfinishedSeal {
					f.problem("has epoch %d by a change that is unfinished", newest.Now.Epoch)
				}
				f.seal = unfinishedSeal
			default:
				f.checkSeal(s.identity, present.Fingerprint(db, "", f.master.Name), g.options.Age(), f.info.Est.At(g.options.Clock.Now()))
			}
		}
		if f.seal == "" && len(f.stands) == g.options.Databases {
			f.seal = newSeal
		}
	}
	return more
}

// newSeal is the cell of a master that has no identity.
const newSeal = "new"

// unfinishedSeal is that of one with a change that is not in force.
const unfinishedSeal = "unfinished"

// olderSeal is that of one whose file may lack a change.
const olderSeal = "older file"

func (f *finding) checkSeal(identity, ours string, age time.Duration, us int64) {
	incarnation, err := admission.ParseIdentity(identity)
	if err != nil {
		f.seal = cmp.Or(f.seal, "invalidated") // also if another database has a vote
		return
	}
	print := incarnation.Fingerprint
	ours, _ = admission.SplitMark(ours)
	settings, _ := admission.SplitMark(print)
	other := settings != ours || settings == print
	if f.unlisted && admission.SameGroup(print, ours) {
		f.seal = "not in use" // it has left, or comes from an earlier time
		return
	}
	f.carries = f.carries || !other && f.seal != "other settings"
	switch {
	case other:
		if f.seal != "other settings" {
			difference, hint := admission.Difference(ours, print), "give the settings of the group; redlockd reconfigure changes them for all daemons"
			if strings.HasPrefix(difference, "master is ") {
				hint = "the name has the address of another master here, or this server has its files"
			}
			f.problem("serves daemons with other settings: %s; %s", difference, hint)
		}
		f.seal, f.carries = "other settings", false
	case incarnation.MayVote(us, age):
		f.seal = "votes"
	case f.seal == "":
		f.seal = "votes in " + (time.Duration(incarnation.Base+clock.Micros(age)-us) * time.Microsecond).Round(100*time.Millisecond).String()
	}
}

// compare checks what only all servers together show.
func compare(all []*finding) {
	var offsets []int64
	for i, f := range all {
		if f.info.Est.Known {
			offsets = append(offsets, f.info.Est.Offset)
		}
		for _, other := range all[:i] {
			if f.info.RunID != "" && f.info.RunID == other.info.RunID {
				f.problem("is the same server as master %s (run_id %s)", other.master.Name, f.info.RunID)
			}
		}
	}
	if len(offsets) == 0 {
		return
	}
	median := clock.Median(offsets)
	for _, f := range all {
		if !f.info.Est.Known {
			continue
		}
		f.offset = f.info.Est.Offset - median
		if clock.Abs(f.offset) > clock.Micros(admission.MaxSkew)+f.info.Est.Err {
			f.problem("%s", admission.ClockOff(f.offset))
		}
	}
}

// findLonely finds blank masters with which no daemon begins: too few of the others are left
// to show that the settings of the daemon are those of the group.
func findLonely(all []*finding) {
	var silent []string
	carriers, blank := 0, 0
	all = slices.DeleteFunc(slices.Clone(all), func(f *finding) bool { return f.unlisted })
	for _, f := range all {
		switch {
		case f.silent:
			silent = append(silent, f.master.Name)
		case f.carries:
			carriers++
		case f.seal == newSeal, f.seal == olderSeal:
			blank++
		}
	}
	quorum := pool.Quorum(len(all))
	older := slices.ContainsFunc(all, func(f *finding) bool { return f.seal == olderSeal })
	if carriers == 0 && !older || carriers >= quorum || carriers+blank < quorum {
		return
	}
	first := ": "
	if len(silent) > 0 {
		first = ". Bring back " + strings.Join(silent, ", ") + ". If they are gone for good: "
	}
	for _, f := range all {
		switch f.seal {
		case olderSeal:
			f.problem("%s, and only %d of %d masters answer with the settings of the group, %d are needed: no daemon begins with it%s%s",
				admission.OlderText, carriers, len(all), quorum, first, admission.AgedAdvice(f.master.Name))
		case newSeal:
			f.problem("is empty, and only %d of %d masters answer with the settings of the group, %d are needed: no daemon begins with it%s%s",
				carriers, len(all), quorum, first, admission.AgedAdvice(f.master.Name))
		}
	}
}

func writeTable(all []*finding, out io.Writer) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "MASTER\tADDRESS\tVERSION\tROLE\tRUN_ID\tDURABLE\tMEMORY\tCLOCK\tROUND TRIP\tSEAL\tFIT")
	for _, f := range all {
		row := []string{f.master.Name, f.master.Address, f.info.Version, f.role, f.info.RunID[:min(8, len(f.info.RunID))], "", f.policy, "", "", f.seal, "yes"}
		if f.info.RunID != "" {
			row[5] = map[bool]string{true: "yes", false: "no"}[f.info.Volatile == ""]
		}
		if f.info.Est.Known {
			row[7] = fmt.Sprintf("%+dms", f.offset/1000)
		}
		if f.rtt > 0 {
			row[8] = f.rtt.Round(time.Microsecond).String()
		}
		if len(f.problems) > 0 {
			row[10] = "NO"
		}
		for i, cell := range row {
			if cell == "" {
				row[i] = "-"
			}
		}
		fmt.Fprintln(table, strings.Join(row, "\t"))
	}
	_ = table.Flush() // a caller that does not read the table reads the exit code
}

// summarize writes every reason in a line of its own.
func summarize(all []*finding, out io.Writer) error {
	unfit := 0
	for _, f := range all {
		for _, text := range f.problems {
			fmt.Fprintf(out, "%s: %s\n", f.master.Name, text)
		}
		for _, text := range f.warnings {
			fmt.Fprintf(out, "%s: warning: %s\n", f.master.Name, text)
		}
		if len(f.problems) > 0 {
			unfit++
		}
	}
	if unfit > 0 {
		return fmt.Errorf("%w: %d of %d masters", ErrUnfit, unfit, len(all))
	}
	return nil
}
