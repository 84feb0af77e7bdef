// Figures: the named numbers of one run, and the medians and ratios of several runs.

package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// figure names a number and its unit.
type figure string

const (
	pairsPerSecond figure = "pairs/s"
	acquireP50     figure = "p50 µs"
	acquireP90     figure = "p90 µs"
	acquireP99     figure = "p99 µs"
	acquireP999    figure = "p99.9 µs"

	perFlush    figure = "commands per flush"       // lock commands per round trip of a lane, without seals
	perRead     figure = "commands per master read" // lock commands per read(2) of a master
	mallocs     figure = "mallocs per pair"         // in the process of the client
	clientCalls figure = "client calls per pair"    // reads and writes of the process of the client
	daemonCalls figure = "daemon calls per pair"
	clientCPU   figure = "client µs per pair" // user and system time
	daemonCPU   figure = "daemon µs per pair"
	mastersCPU  figure = "masters µs per pair" // of all masters together
	serviceCPU  figure = "daemon and masters µs per pair"
	allCPU      figure = "all µs per pair" // of client, daemon and masters
	// boundShare is what the throughput is of that of a daemon which costs nothing, with the same
	// client and the same masters, on a machine whose cores are busy: the part of client and
	// masters in the processor time.
	boundShare figure = "share of the bound"

	handoversPerSecond figure = "hand-overs/s" // grants to another caller than the previous one

	fsyncP50 figure = "fsync µs" // of a write of 100 bytes in the masters' directory

	beforeP50      figure = "p50 µs before"
	beforeP99      figure = "p99 µs before"
	afterP50       figure = "p50 µs after"
	afterP99       figure = "p99 µs after"
	pairsBefore    figure = "pairs/s before"
	pairsAfter     figure = "pairs/s after"
	slowest        figure = "slowest ms" // acquire that began in the first 100 ms
	failures       figure = "errors"
	firstNoQuorum  figure = "first NOQUORUM ms"  // from the death of the last of the majority
	noQuorumAnswer figure = "NOQUORUM answer ms" // of one request sent afterwards
)

// figures are the figures of one run. A number that could not be measured is missing.
type figures map[figure]float64

// results has the figures of every round by the name of the scenario, nil for a run that
// failed.
type results map[string][]figures

// brief is one line for the output during the benchmark.
func (f figures) brief() string {
	var parts []string
	for _, name := range []figure{pairsPerSecond, handoversPerSecond, acquireP50, acquireP99, perFlush, pairsBefore, pairsAfter, beforeP99, afterP99, firstNoQuorum,
		pairsWithout, pairsBeside, withoutP99, besideP99, wholeWalk} {
		if v, ok := f[name]; ok {
			parts = append(parts, fmt.Sprintf("%s %s", show(v), name))
		}
	}
	return strings.Join(parts, ", ")
}

// median returns the median of one figure over the rounds.
func (r results) median(scenario string, name figure) (float64, bool) {
	return median(r.values(scenario, name))
}

// values returns one figure of all rounds that have it.
func (r results) values(scenario string, name figure) []float64 {
	var out []float64
	for _, f := range r[scenario] {
		if v, ok := f[name]; ok {
			out = append(out, v)
		}
	}
	return out
}

// within returns the ratios of two figures of the same run.
func (r results) within(scenario string, name, other figure) []float64 {
	var out []float64
	for _, f := range r[scenario] {
		a, ok := f[name]
		if b := f[other]; ok && b > 0 {
			out = append(out, a/b)
		}
	}
	return out
}

// ratios returns the ratios between a scenario and its peer, round by round.
func (r results) ratios(scenario, peer string, name figure) []float64 {
	var out []float64
	mine, other := r[scenario], r[peer]
	for i := range min(len(mine), len(other)) {
		a, ok := mine[i][name]
		b, known := other[i][name]
		if ok && known && b > 0 {
			out = append(out, a/b)
		}
	}
	return out
}

// median returns false if there are no values.
func median(values []float64) (float64, bool) {
	n := len(values)
	if n == 0 {
		return 0, false
	}
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(n-1)/2] + sorted[n/2]) / 2, true
}

// show formats a number with three significant digits.
func show(v float64) string {
	switch digits := 2 - int(math.Floor(math.Log10(math.Abs(v)))); {
	case v == 0:
		return "0"
	case digits <= 0:
		return fmt.Sprintf("%.0f", v)
	default:
		return fmt.Sprintf("%.*f", min(digits, 4), v)
	}
}
