// The charts of the report: throughput by concurrency, the percentiles of an acquire, and the
// processor time of a pair for each process.

package main

import (
	"math"
	"os"
	"path/filepath"
	"strings"
)

// chartedPeers are the peers in the charts, and the names of their scenarios.
var chartedPeers = []struct {
	name     string
	scenario func(callers int) string
}{
	{"redlockd, multiplexed", multiplexedName},
	{"redlockd, in process", engineName},
	{"floor", floorName},
	{"redsync + go-redis", redsyncName},
	{"node-redlock", nodeName},
	{"etcd, 3 members", etcdName},
	{"bsm/redislock, one Redis", redislockName},
	{"rueidislock, one Redis", trackingName},
}

const (
	chartDir     = "charts" // beside the report
	costsCallers = 64
)

// charts returns the charts by file name, without those that have no numbers.
func charts(r results) map[string]string {
	counts, columns := []int{1, 8, 64, 256}, []string{"1 caller", "8", "64", "256"}
	percentiles := []figure{acquireP50, acquireP90, acquireP99, acquireP999}
	throughput := lineChart{title: "Uncontended pairs per second against concurrency", axis: "acquire and release, five masters; median", columns: columns}
	latency := lineChart{title: "Latency of an acquire, 64 callers", axis: "microseconds; median of the rounds", columns: []string{"p50", "p90", "p99", "p99.9"}}
	costs := barChart{title: "What a pair costs, 64 callers", axis: "processor time in µs", parts: []string{"client", "daemon", "masters"}}
	at := func(scenario string, name figure) float64 {
		if v, ok := r.median(scenario, name); ok {
			return v
		}
		return math.NaN()
	}
	for _, peer := range chartedPeers {
		pairs, waits := series{name: peer.name}, series{name: peer.name}
		for _, n := range counts {
			pairs.values = append(pairs.values, at(peer.scenario(n), pairsPerSecond))
		}
		for _, p := range percentiles {
			waits.values = append(waits.values, at(peer.scenario(costsCallers), p))
		}
		throughput.lines, latency.lines = append(throughput.lines, pairs), append(latency.lines, waits)
		cost := bar{name: peer.name}
		for _, name := range []figure{clientCPU, daemonCPU, mastersCPU} {
			v, _ := r.median(peer.scenario(costsCallers), name)
			cost.parts = append(cost.parts, v)
		}
		if sum(cost.parts) > 0 {
			costs.bars = append(costs.bars, cost)
		}
	}
	// The last line and bar: a daemon that costs nothing, with the clients and masters of this run.
	bound := series{name: "bound: free daemon"}
	for _, n := range counts {
		bound.values = append(bound.values, at(multiplexedName(n), pairsPerSecond)/at(multiplexedName(n), boundShare))
	}
	throughput.lines = append(throughput.lines, bound)
	if client, masters := at(multiplexedName(costsCallers), clientCPU), at(multiplexedName(costsCallers), mastersCPU); client+masters > 0 {
		costs.bars = append(costs.bars, bar{name: bound.name, parts: []float64{client, 0, masters}})
	}
	drawn := map[string]string{"throughput.svg": throughput.svg(), "latency.svg": latency.svg(), "cost.svg": costs.svg()}
	for name, svg := range drawn {
		if svg == "" {
			delete(drawn, name)
		}
	}
	return drawn
}

// publish writes the report, and its charts into a directory beside it.
func publish(file, page string, r results) error {
	drawn := charts(r)
	dir := filepath.Join(filepath.Dir(file), chartDir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var links strings.Builder
	for _, name := range []string{"throughput.svg", "latency.svg", "cost.svg"} {
		svg, ok := drawn[name]
		if !ok {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(svg), 0o644); err != nil {
			return err
		}
		links.WriteString("![" + strings.TrimSuffix(name, ".svg") + "](" + chartDir + "/" + name + ")\n\n")
	}
	head, tables, _ := strings.Cut(page, "\n## ")
	return os.WriteFile(file, []byte(head+"\n"+links.String()+"## "+tables), 0o644)
}
