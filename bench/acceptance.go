// The targets. Each is a median over the rounds: of a figure, of its ratio to a peer, or
// of its ratio to another figure of the same run.

package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// aim is one target of the product.
type aim struct {
	what     string
	scenario string
	name     figure
	peer     string // the figure is a ratio to this scenario in the same round; "" = none
	before   figure // the figure is a ratio to this figure of the same run; "" = none
	atLeast  bool   // false: at most
	bound    float64
}

func aims() []aim {
	stopped := multiplexedName(failureCallers) + ", one master stopped"
	ids := func(source string, m medium) string {
		return fmt.Sprintf("ids: %s, %s, %s", source, m.name, callers(64))
	}
	naive := "two phases, retried at once"
	return []aim{
		{what: "one multiplexed client, 64 callers: share of the bound", scenario: multiplexedName(64), name: boundShare, atLeast: true, bound: 0.68},
		{what: "one client on one connection, 64 callers: share of the bound", scenario: tunedName(64), name: boundShare, atLeast: true, bound: 0.68},
		{what: "one multiplexed client, 256 callers: share of the bound", scenario: multiplexedName(256), name: boundShare, atLeast: true, bound: 0.68},
		{what: "one client on one connection, 256 callers: share of the bound", scenario: tunedName(256), name: boundShare, atLeast: true, bound: 0.68},
		{what: "50 connections, depth 1: share of the bound", scenario: connectionsName(1), name: boundShare, atLeast: true, bound: 0.6},
		{what: "50 connections, depth 16: share of the bound", scenario: connectionsName(16), name: boundShare, atLeast: true, bound: 0.7},
		{what: "one multiplexed client, 64 callers: acquire p99 × redsync", scenario: multiplexedName(64), name: acquireP99, peer: redsyncName(64), bound: 0.15},
		{what: "one client on one connection, 64 callers: acquire p99 × redsync", scenario: tunedName(64), name: acquireP99, peer: redsyncName(64), bound: 0.15},
		{what: "one multiplexed client, 1 caller: acquire p50 × redsync", scenario: multiplexedName(1), name: acquireP50, peer: redsyncName(1), bound: 1.15},
		{what: "one client on one connection, 1 caller: acquire p50 × redsync", scenario: tunedName(1), name: acquireP50, peer: redsyncName(1), bound: 1.15},
		{what: "the fence, 64 callers in process: throughput × without register", scenario: fencedName, name: pairsPerSecond, peer: unfencedName, atLeast: true, bound: 0.85},
		{what: "one master stopped, 64 callers: acquire p99 × before", scenario: stopped, name: afterP99, before: beforeP99, bound: 2},
		{what: "ids in memory, 64 callers: throughput × two phases", scenario: ids("engine in process", media[0]), name: pairsPerSecond, peer: ids(naive, media[0]), atLeast: true, bound: 150},
		{what: "ids with appendfsync always, 64 callers: throughput × two phases", scenario: ids("engine in process", media[1]), name: pairsPerSecond, peer: ids(naive, media[1]), atLeast: true, bound: 60},
		{what: "two daemons, 64 callers each: throughput × one with 128", scenario: twoDaemonsName, name: pairsPerSecond, peer: multiplexedName(2 * callersOfEach), atLeast: true, bound: 0.85},
		{what: "two daemons, one connection to each, 64 callers each: throughput × one with 128", scenario: twoTunedName, name: pairsPerSecond, peer: tunedName(2 * callersOfEach), atLeast: true, bound: 0.85},
		{what: "4 groups, 64 callers with keys at home: processor time of daemon and masters × one group", scenario: groupsName(4, true), name: serviceCPU, peer: oneGroupName, bound: 1.1},
		{what: "64 clients, one contended key: hand-overs × redsync", scenario: handoverName, name: handoversPerSecond, peer: handoverPeer, atLeast: true, bound: 10},
		{what: "64 clients, one contended key: p99 of the wait × redsync", scenario: handoverName, name: acquireP99, peer: handoverPeer, bound: 1},
		{what: "beside 10 000 HOLD leases, 64 callers: throughput × without", scenario: holdName, name: pairsPerSecond, peer: freshName, atLeast: true, bound: 0.9},
		{what: "DLOCK p99 while 100 000 locks are listed × without, 16 callers that pause", scenario: pacedListing, name: besideP99, before: withoutP99, bound: 1.5},
		{what: "beside 64 callers that try one key: throughput × beside own keys", scenario: besideHotName, name: pairsPerSecond, peer: besideOwnName, atLeast: true, bound: 0.9},
		{what: "beside 64 callers that try one key: acquire p99 × beside own keys", scenario: besideHotName, name: acquireP99, peer: besideOwnName, bound: 1.2},
		{what: "FAIR, 64 callers: throughput × plain", scenario: commandName("FAIR"), name: pairsPerSecond, peer: multiplexedName(64), atLeast: true, bound: 0.85},
		{what: "SHARED, one key, 64 callers: throughput × plain", scenario: commandName("SHARED, one key"), name: pairsPerSecond, peer: multiplexedName(64), atLeast: true, bound: 0.65},
		{what: "DMLOCK of three keys, 64 callers: throughput × plain", scenario: commandName("DMLOCK of three keys"), name: pairsPerSecond, peer: multiplexedName(64), atLeast: true, bound: 0.6},
		{what: "LIMIT 256, one key, 64 callers: throughput × plain", scenario: commandName("LIMIT 256, one key"), name: pairsPerSecond, peer: multiplexedName(64), atLeast: true, bound: 0.5},
		{what: "drop-in SET NX PX and compare-and-delete, 64 callers: processor time of all × DLOCK and DUNLOCK", scenario: dropinName, name: allCPU, peer: multiplexedName(64), bound: 1.15},
	}
}

// values returns one value for each round.
func (a aim) values(r results) []float64 {
	switch {
	case a.peer != "":
		return r.ratios(a.scenario, a.peer, a.name)
	case a.before != "":
		return r.within(a.scenario, a.name, a.before)
	}
	return r.values(a.scenario, a.name)
}

// line is the row of a target. ok is false if nothing was measured for it.
func (a aim) line(r results) (text string, ok bool) {
	values := a.values(r)
	middle, ok := median(values)
	if !ok {
		return "", false
	}
	sign, met := "≤", middle <= a.bound
	if a.atLeast {
		sign, met = "≥", middle >= a.bound
	}
	result := "**missed**"
	if met {
		result = "met"
	}
	return fmt.Sprintf("| %s | %s %s | %s (%s-%s) | %s |\n", a.what, sign, show(a.bound),
		show(middle), show(slices.Min(values)), show(slices.Max(values)), result), true
}

// acceptance is the table of all measured targets.
func acceptance(r results) string {
	var b strings.Builder
	for _, a := range aims() {
		if line, ok := a.line(r); ok {
			b.WriteString(line)
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "\n## Targets\n\nMedian over the rounds of paired figures, and their range.\n\n" +
		"| what | target | measured | |\n|---|---:|---:|---|\n" + b.String()
}

// aimed matches the scenarios that have a target.
func aimed() *regexp.Regexp {
	var names []string
	for _, a := range aims() {
		names = append(names, regexp.QuoteMeta(a.scenario))
	}
	return regexp.MustCompile("^(" + strings.Join(names, "|") + ")$")
}

// missedTargets is the table of processor times for all missed targets of throughput. Both
// sides keep both cores busy. So the target allows for a pair the time of the peer, divided
// by the bound, or what client and masters take, divided by their share.
func missedTargets(r results) string {
	var b strings.Builder
	for _, a := range aims() {
		middle, ok := median(a.values(r))
		if !a.atLeast || !ok || middle >= a.bound {
			continue
		}
		parts := map[figure]float64{}
		for _, name := range []figure{clientCPU, daemonCPU, mastersCPU, allCPU} {
			parts[name], _ = r.median(a.scenario, name)
		}
		allowed := (parts[clientCPU] + parts[mastersCPU]) / a.bound
		if a.name != boundShare {
			peer, known := r.median(a.peer, allCPU)
			if a.name != pairsPerSecond || !known {
				continue
			}
			allowed = peer / a.bound
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", a.what, show(parts[clientCPU]), show(parts[daemonCPU]),
			show(parts[mastersCPU]), show(parts[allCPU]), show(allowed))
	}
	if b.Len() == 0 {
		return ""
	}
	return "\n### Processor time of the missed targets\n\n" +
		"Both sides keep both cores busy: the processor time of a pair decides. The last column is what the target would allow: " +
		"the peer's time divided by the target, or the time of client and masters divided by their share. The row of raw lanes below " +
		"shows what the daemon's lanes could gain without the client library.\n\n" +
		"| what | client µs | daemon µs | masters µs | all µs per pair | the target allows |\n|---|---:|---:|---:|---:|---:|\n" + b.String()
}
