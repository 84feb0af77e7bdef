// The report: medians over the rounds in tables, ratios from runs of the same round, and
// one line about the machine, without its name.

package main

import (
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// Pages of the report. A table shows the scenarios of its pages.
const (
	pagePairs    = "pairs"
	pageModes    = "modes"
	pageSizes    = "sizes"
	pageGroups   = "groups"
	pageListing  = "listing"
	pageHandover = "handover"
	pageBeside   = "beside"
	pageWork     = "work"
	pageIDs      = "ids"
	pageFailures = "failures"
	pageDistance = "distance"
)

// column is one column of a table.
type column struct {
	title  string
	cell   func(r results, s scenario) string
	detail bool // is in the output of a run alone
}

// maxRows are those of a table on the page. The output of a run has all rows.
const maxRows = 10

// mainRows names the rows of the page in tables that have more than maxRows, by their title.
var mainRows = map[string]*regexp.Regexp{
	"Uncontended acquire and release, unique keys": regexp.MustCompile(`^(redsync \+ go-redis|daemon, one multiplexed client), (1|64) callers?$|` +
		`^daemon, one multiplexed client, 256 callers$|^(engine in process|bsm/redislock.*|rueidislock.*|node-redlock.*|etcd.*), 64 callers$`),
	"Modes and their cost": regexp.MustCompile(`^daemon, one multiplexed client, (TLS|64 callers, )|^two daemons, one multiplexed|` +
		`^daemon, drop-in|^engine in process, raw lanes, 64 |^engine in process, own masters, 64 `),
	"Masters that are not on this machine": regexp.MustCompile(`, 64 callers$|^masters 1ms away, .*, 1 caller$`),
	"What a pair costs": regexp.MustCompile(`^daemon, (one multiplexed client, (1|64|256) callers?|50 connections, depth 16)$|` +
		`^(redsync \+ go-redis|engine in process|engine in process, raw lanes|bsm/redislock.*|node-redlock.*|etcd.*), 64 callers$`),
}

// detail leaves a column out of the page.
func detail(c column) column {
	c.detail = true
	return c
}

// shown are the columns of a table: the page has no details, and no column without a figure.
func (t table) shown(rows []scenario, r results, page bool) []column {
	return slices.DeleteFunc(slices.Clone(t.columns), func(c column) bool {
		figure := func(s scenario) bool { cell := c.cell(r, s); return cell != "" && cell != "0" }
		return page && (c.detail || !slices.ContainsFunc(rows, figure))
	})
}

// byTarget are the tables whose figures the page has among its targets.
var byTarget = []string{"Groups of masters", "Beside a walk over 100 000 locks", "Beside other callers"}

// onPage returns whether a table of the page shows a scenario.
func (t table) onPage(s scenario) bool {
	if slices.Contains(byTarget, t.title) {
		return false
	}
	rows := mainRows[t.title]
	return rows == nil || rows.MatchString(s.name)
}

// table is one table of the report.
type table struct {
	pages       []string
	title, note string
	columns     []column
}

func tables() []table {
	return []table{
		{[]string{pagePairs}, "Uncontended acquire and release, unique keys",
			"Ratios are to redsync with as many callers (50 connections: with 64). Errors are failed turns over all rounds.",
			against(pairsPerSecond, "redsync")},
		{[]string{pageModes}, "Modes and their cost",
			"Ratios are to the same load without the feature. Readers, permits and several keys compare with exclusive locks in " +
				"process, and the engine with a register with the engine without one. Raw lanes are links without the client library " +
				"and its guard; they compare with the engine. TLS, renewed leases and the drop-in commands compare with one multiplexed " +
				"client with DLOCK and DUNLOCK, and two daemons with one that has as many callers.",
			against(pairsPerSecond, "plain")},
		{[]string{pageSizes}, "Three to nine masters",
			"Ratios are to redsync on masters of the same number.", against(pairsPerSecond, "redsync")},
		{[]string{pageGroups}, "Groups of masters",
			"Groups of three masters, each with a daemon. One daemon has the load of a daemon beside one group; the figures are of it and " +
				"of the masters that it uses. Ratios are to one group.",
			[]column{value(pairsPerSecond), value(daemonCPU), value(mastersCPU), value(perRead),
				detail(versus("daemon × one group", daemonCPU)), detail(versus("masters × one group", mastersCPU)),
				versus("both × one group", serviceCPU), total(failures)}},
		{[]string{pageListing}, "Beside a walk over 100 000 locks",
			"One client iterates over all locks with DLOCKS again and again, in every second quarter of a second. Callers that " +
				"pause leave the machine idle most of the time. Callers without a pause share its cores with the walk.",
			[]column{value(pairsWithout), value(pairsBeside), value(withoutP50), value(besideP50), value(withoutP99), value(besideP99),
				within("p99 beside × without", besideP99, withoutP99), value(wholeWalk), total(failures)}},
		{[]string{pageHandover}, "One contended key",
			"Every caller waits for the lock, releases it at once and requests it again; times are those of the wait. Hand-overs " +
				"are grants to another caller than the previous one: with polling the lock often returns to the previous holder. Ratios " +
				"are to redsync.",
			append(against("grants/s", "redsync"), value(handoversPerSecond), versus("hand-overs × redsync", handoversPerSecond))},
		{[]string{pageDistance}, "Masters that are not on this machine",
			"A relay in front of each master delivers every byte later. Round trips are those to the third nearest of five masters; no " +
				"service can answer in less than one. Ratios are to redsync, which waits for the slowest master.",
			append([]column{value(roundTripsP50), value(roundTripsP99)}, against(pairsPerSecond, "redsync")...)},
		{[]string{pageBeside}, "Beside other callers",
			"64 callers beside as many that are not measured, of another client. Ratios are to the same load beside callers with keys of their own.",
			against(pairsPerSecond, "own keys")},
		{[]string{pageWork}, "Work that is done once",
			"DWORK and DWORKDONE, every time new work. Ratios are to redsync's plain locks with as many callers.",
			against(pairsPerSecond, "redsync")},
		{[]string{pageIDs}, "Ids of one counter",
			"One id at a time. Ratios are to the usual algorithm with two phases. The column fsync is the median of a write of 100 " +
				"bytes in the masters' directory, before each run.",
			append(against("ids/s", "two phases"), value(fsyncP50))},
		{[]string{pagePairs, pageModes, pageSizes}, "What a pair costs",
			"Processor time is user and system time; calls are reads and writes. The client's process is this program; the engine " +
				"in process runs in it, too. Lock commands are SET, EVAL and EVALSHA without the seals. Lanes count the commands per " +
				"flush, masters the commands per read. The share of the bound is the part of client and masters in the processor time: " +
				"with a daemon that costs nothing, busy cores would serve so much more.",
			[]column{value(clientCPU), value(daemonCPU), value(mastersCPU), value(allCPU), value(boundShare), value(perFlush), value(perRead),
				value(mallocs), detail(value(clientCalls)), detail(value(daemonCalls))}},
		{[]string{pageFailures}, "Masters fail",
			"\"After\" counts acquires that began more than 100 ms after the fault. The slowest is the longest acquire that began " +
				"before that and met the fault, which lasts half of a run. In an empty cell nothing happened.",
			[]column{value(pairsBefore), value(pairsAfter), value(beforeP50), value(afterP50), value(beforeP99), value(afterP99),
				value(slowest), total(failures), value(firstNoQuorum), value(noQuorumAnswer)}},
	}
}

// against returns the columns of a load and its peer. title is the name of the throughput.
func against(title figure, peer string) []column {
	return []column{titled(string(title), pairsPerSecond), value(acquireP50), value(acquireP99),
		versus(string(title)+" × "+peer, pairsPerSecond), detail(versus("p50 × "+peer, acquireP50)),
		detail(versus("p99 × "+peer, acquireP99)), total(failures)}
}

// value is the column with the median of a figure.
func value(name figure) column { return titled(string(name), name) }

func titled(title string, name figure) column {
	return column{title: title, cell: func(r results, s scenario) string {
		v, ok := r.median(s.name, name)
		if !ok {
			return ""
		}
		return show(v)
	}}
}

// total is the column with the sum of a figure: a median would hide rare events.
func total(name figure) column {
	return column{title: string(name), cell: func(r results, s scenario) string {
		sum, known := 0.0, false
		for _, f := range r[s.name] {
			v, ok := f[name]
			sum, known = sum+v, known || ok
		}
		if !known {
			return ""
		}
		return fmt.Sprintf("%.0f", sum)
	}}
}

// versus is the column with the median of the paired ratios to the peer, and their range.
func versus(title string, name figure) column {
	return column{title: title, cell: func(r results, s scenario) string {
		return ranged(r.ratios(s.name, s.peer, name))
	}}
}

// within is the column with the median of the ratios of two figures of a run, and their
// range.
func within(title string, name, other figure) column {
	return column{title: title, cell: func(r results, s scenario) string {
		return ranged(r.within(s.name, name, other))
	}}
}

// ranged formats a median and the range.
func ranged(values []float64) string {
	v, ok := median(values)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%s (%s-%s)", show(v), show(slices.Min(values)), show(slices.Max(values)))
}

// describeMachine returns the first sentence: what was measured, and on which machine.
func describeMachine(tb *testbed, s settings) string {
	return fmt.Sprintf("Throughput, latency and cost of redlockd beside other locks, on %d cores, %s %s/%s, Redis %s, %d masters on loopback, "+
		"without persistence unless noted, everything on one machine; medians of %d rounds of %v.",
		runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH, tb.masters[0].version, len(tb.masters), s.rounds, s.span)
}

// report writes the output of a run, or the page, which has fewer rows. missing has the reason for
// each scenario without figures.
func report(machine string, chosen []scenario, r results, missing map[string]string, page bool) string {
	var b strings.Builder
	b.WriteString("# Results\n\n" + machine + "\n\n")
	b.WriteString("`make bench` writes this page. On a shared machine absolute figures swing by a factor of two from minute to\n" +
		"minute. So compare the ratios: medians of those between runs of the same round, with their range. The output of a run has more rows and columns.\n")
	b.WriteString(acceptance(r))
	if !page {
		b.WriteString(missedTargets(r))
	}
	for _, t := range tables() {
		rows := slices.DeleteFunc(slices.Clone(chosen), func(s scenario) bool {
			_, measured := r[s.name]
			return !measured || !slices.Contains(t.pages, s.page) || page && !t.onPage(s)
		})
		if len(rows) > 0 {
			t.write(&b, rows, r, page)
		}
	}
	if len(missing) > 0 {
		b.WriteString("\n## Not measured\n\n")
	}
	for _, s := range chosen {
		if why, ok := missing[s.name]; ok {
			fmt.Fprintf(&b, "- %s: %s\n", s.name, why)
		}
	}
	return b.String()
}

func (t table) write(b *strings.Builder, rows []scenario, r results, page bool) {
	columns := t.shown(rows, r, page)
	fmt.Fprintf(b, "\n## %s\n\n%s\n\n| scenario |", t.title, t.note)
	for _, c := range columns {
		b.WriteString(" " + c.title + " |")
	}
	b.WriteString("\n|---|" + strings.Repeat("---:|", len(columns)) + "\n")
	for _, s := range rows {
		b.WriteString("| " + s.name + " |")
		for _, c := range columns {
			b.WriteString(" " + c.cell(r, s) + " |")
		}
		b.WriteString("\n")
	}
}
