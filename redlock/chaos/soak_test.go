package chaos

// soak_test.go: the test that nothing grows. Clients of every kind put half of the load on the
// daemons that they can, with a fault a minute, round after round. After each round, when
// everything is quiet, every process is measured.

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/time/rate"
)

const (
	soakRound = 2 * time.Minute
	soakPace  = time.Minute // between two faults, on average
	// soakFull is how long the clients work without a pause, to measure what half of the load is.
	soakFull = 10 * time.Second
)

// soakFaults leave every process its memory, so that what it takes up can be compared.
func soakFaults(plan) []fault {
	return slices.Concat(networkFaults(), masterFaults(), []fault{
		{"a stopped daemon", 6, onDaemon, span{time.Millisecond, longestPause}, stopDaemon, continueDaemon},
		{"FLUSHALL", 4, onMemory, span{}, flushAll, nil},
	})
}

func TestSoak(t *testing.T) {
	span := soakTime(t)
	rounds := max(3, int(span/soakRound)) // the first one fills what is kept on purpose
	r := newRun(t, mix{"soak", plan{masters: 3, daemons: 2, admin: true}, append(trades(), crowds()...), soakFaults}, chosenSeed(t))
	defer r.keepIfFailed()
	r.nemesis.pace = soakPace
	full := r.halve()
	load := 0
	var sizes [][]size
	for range rounds {
		before := r.answers.count()
		r.load(span/time.Duration(rounds), true)
		load += r.answers.count() - before
		for _, d := range r.stand.daemons {
			d.awaitVotes()
		}
		r.nemesis.allVote()
		r.probe()
		r.stand.awaitEmpty()
		r.stand.awaitIdle()
		sizes = append(sizes, r.stand.sizes())
	}
	t.Logf("%d calls in %v of load, %.0f a second; %.0f a second without pauses\n%s", load, span, float64(load)/span.Seconds(), full, soakTable(sizes))
	r.verdict()
	r.compareSizes(sizes)
	r.compareWithNew()
}

// halve measures how many calls a second the clients make without pauses. From then on as many
// of their pauses end in a second as half of that load has.
func (r *run) halve() (full float64) {
	r.t.Helper()
	r.pace = newPace(rate.Inf)
	before := r.answers.count()
	r.load(soakFull, false)
	full = float64(r.answers.count()-before) / soakFull.Seconds()
	r.pace = newPace(rate.Limit(float64(r.pace.ended.Load()) / soakFull.Seconds() / 2))
	return full
}

// soakTime is the time of load.
func soakTime(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("CHAOS_SOAK_MINUTES")
	if text == "" {
		t.Skip("nothing grows in a few seconds: make soak MINUTES=5, which sets CHAOS_SOAK_MINUTES")
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > 24*60 {
		t.Fatalf("CHAOS_SOAK_MINUTES: %q, allowed are 1 to %d", text, 24*60)
	}
	return time.Duration(n) * time.Minute
}

// size is what a process takes up without load.
type size struct {
	who     string
	amounts map[string]int64 // may move by the slack of their name
	counts  map[string]int64 // of things that are exact
}

// amountSlack is by how much an amount moves that does not grow, beside a twentieth. A metric
// that is counted by a label comes with its first event.
var amountSlack = map[string]int64{"bytes of heap": 2 << 20, "bytes resident": 16 << 20, "bytes used": 512 << 10, "metrics": 60}

// sizes are the least of several looks: what is used for a moment is not kept.
func (s *stand) sizes() []size {
	s.t.Helper()
	all := s.sizesNow()
	for range 10 {
		time.Sleep(rest / 10)
		for i, now := range s.sizesNow() {
			for name, n := range now.amounts {
				all[i].amounts[name] = min(all[i].amounts[name], n)
			}
			for name, n := range now.counts {
				all[i].counts[name] = min(all[i].counts[name], n)
			}
		}
	}
	return all
}

func (s *stand) sizesNow() []size {
	s.t.Helper()
	var all []size
	for i, d := range s.daemons {
		metrics := d.metrics()
		one := size{
			who: fmt.Sprintf("daemon %d", i),
			amounts: map[string]int64{
				"bytes of heap": number(d.info("memory", "used_memory")), "bytes resident": metrics["process_resident_memory_bytes"], "metrics": int64(len(metrics)),
			},
			counts: map[string]int64{"descriptors": int64(d.descriptors()), "goroutines": metrics["go_goroutines"]},
		}
		for name, n := range metrics {
			if strings.HasPrefix(name, "redlockd_") && !moves(name) {
				one.counts[name] = n
			}
		}
		all = append(all, one)
	}
	for i, m := range s.masters {
		one := size{who: "master " + masterName(i), counts: map[string]int64{"keys": m.DBSize()}}
		info, err := m.Do("INFO")
		if err != nil {
			s.t.Error(err)
		}
		text, _ := info.(string)
		one.amounts = map[string]int64{"bytes used": number(field(text, "used_memory")), "bytes resident": number(field(text, "used_memory_rss"))}
		for _, name := range []string{"number_of_cached_scripts", "connected_clients", "pubsub_channels"} {
			one.counts[name] = number(field(text, name))
		}
		all = append(all, one)
	}
	return all
}

// moves reports of a metric of the daemon that it counts what has happened, or time.
func moves(name string) bool {
	name, _, _ = strings.Cut(name, "{")
	return slices.ContainsFunc([]string{"_total", "_seconds", "_bucket", "_sum", "_count"}, func(end string) bool { return strings.HasSuffix(name, end) })
}

// once keeps no connection, which the daemon would have to keep, too.
var once = http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: waitTimeout}

// metrics are those of its admin endpoint, by their names with labels.
func (d *daemon) metrics() map[string]int64 {
	all := map[string]int64{}
	reply, err := once.Get("http://" + d.admin + "/metrics")
	if err != nil {
		d.stand.t.Errorf("the metrics of a daemon: %v", err)
		return all
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil || reply.StatusCode != http.StatusOK {
		d.stand.t.Errorf("the metrics of a daemon: %s, %v", reply.Status, err)
	}
	for line := range strings.Lines(string(text)) {
		at := strings.LastIndexByte(line, ' ')
		if n, err := strconv.ParseFloat(strings.TrimSpace(line[at+1:]), 64); err == nil && at > 0 && line[0] != '#' {
			all[line[:at]] = int64(n)
		}
	}
	return all
}

// field of an INFO text, "" if it is not there.
func field(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// compareSizes: after the first round, nothing grows.
func (r *run) compareSizes(sizes [][]size) {
	r.t.Helper()
	before, after := sizes[0], sizes[len(sizes)-1]
	for i, one := range after {
		for name, n := range one.amounts {
			if was := before[i].amounts[name]; n > was+was/20+amountSlack[name] || n <= 0 {
				r.t.Errorf("%s has %d %s, %d after the first round", one.who, n, name, was)
			}
		}
		for name, n := range one.counts {
			if was := before[i].counts[name]; n > was+slack || n < 0 {
				r.t.Errorf("%s has %d %s, %d after the first round", one.who, n, name, was)
			}
		}
	}
}

// soakTable has a row for each process and round.
func soakTable(sizes [][]size) string {
	var out strings.Builder
	out.WriteString("| round | process | resident kB | heap kB | goroutines | descriptors or clients | keys | metrics |\n|---:|---|---:|---:|---:|---:|---:|---:|\n")
	for round, all := range sizes {
		for _, one := range all {
			heap := one.amounts["bytes of heap"] + one.amounts["bytes used"]
			fmt.Fprintf(&out, "| %d | %s | %d | %d | %d | %d | %d | %d |\n", round+1, one.who, one.amounts["bytes resident"]>>10, heap>>10,
				one.counts["goroutines"], one.counts["descriptors"]+one.counts["connected_clients"], one.counts["keys"], one.amounts["metrics"])
		}
	}
	return out.String()
}
