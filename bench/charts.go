// Which charts stand beside the report? Throughput against concurrency, the
// percentiles of an acquire, and what a pair costs whom.
package main

import (
	"math"
	"os"
	"path/filepath"
	"strings"
)

// shown are who is compared, and what a scenario of theirs is called.
var shown = []struct {
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

// charts by file; one without numbers is left out.
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
	for _, who := range shown {
		pairs, waits := series{name: who.name}, series{name: who.name}
		for _, n := range counts {
			pairs.values = append(pairs.values, at(who.scenario(n), pairsPerSecond))
		}
		for _, p := range percentiles {
			waits.values = append(waits.values, at(who.scenario(costsCallers), p))
		}
		throughput.lines, latency.lines = append(throughput.lines, pairs), append(latency.lines, waits)
		cost := bar{name: who.name}
		for _, name := range []figure{clientCPU, daemonCPU, mastersCPU} {
			v, _ := r.median(who.scenario(costsCallers), name)
			cost.parts = append(cost.parts, v)
		}
		if sum(cost.parts) > 0 {
			costs.bars = append(costs.bars, cost)
		}
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
