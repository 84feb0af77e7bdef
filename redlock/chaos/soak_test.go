package chaos

// soak_test.go: the test that nothing grows. It runs the same load again and again, one
// master stopped for a part of it, and measures every process when it is quiet.

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	soakRounds = 3 // the first one fills what is kept on purpose
	// Garbage that was not collected yet is no growth: the heap of an idle daemon
	// is about 2 MB and moves by half of that.
	heapSlack = 2 << 20
	// used_memory of an idle redis-server moves by the buffers of its clients.
	masterSlack = 512 << 10
)

func TestSoak(t *testing.T) {
	span := soakTime(t) / soakRounds
	r := newRun(t, mix{"soak", plan{masters: 3, daemons: 2}, trades(), func(plan) []fault { return nil }}, chosenSeed(t))
	defer r.keepIfFailed()
	var sizes [][]size
	for range soakRounds {
		r.load(span/2, false)
		r.stand.masters[2].Stop()
		r.load(span/2, false)
		r.stand.masters[2].Cont()
		for _, d := range r.stand.daemons {
			d.awaitVotes()
		}
		r.probe()
		r.stand.awaitEmpty()
		sizes = append(sizes, r.stand.sizes())
	}
	r.verdict()
	r.compareSizes(sizes)
	r.compareWithNew()
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
	who    string
	slack  int64 // of memory
	memory int64
	counts map[string]int64 // of things that are exact
}

// sizes are the least of several looks: what is used for a moment is not kept.
func (s *stand) sizes() []size {
	s.t.Helper()
	all := s.sizesNow()
	for range 10 {
		time.Sleep(rest / 10)
		for i, now := range s.sizesNow() {
			all[i].memory = min(all[i].memory, now.memory)
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
		all = append(all, size{
			who: fmt.Sprintf("daemon %d", i), slack: heapSlack, memory: number(d.info("memory", "used_memory")),
			counts: map[string]int64{"descriptors": int64(d.descriptors())},
		})
	}
	for i, m := range s.masters {
		one := size{who: "master " + masterName(i), slack: masterSlack, counts: map[string]int64{"keys": m.DBSize()}}
		info, err := m.Do("INFO")
		if err != nil {
			s.t.Error(err)
		}
		text, _ := info.(string)
		one.memory = number(field(text, "used_memory"))
		for _, name := range []string{"number_of_cached_scripts", "connected_clients", "pubsub_channels"} {
			one.counts[name] = number(field(text, name))
		}
		all = append(all, one)
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
		r.t.Logf("%s: memory %d, was %d; %v, was %v", one.who, one.memory, before[i].memory, one.counts, before[i].counts)
		if one.memory > before[i].memory+before[i].memory/20+one.slack {
			r.t.Errorf("%s grew from %d to %d bytes", one.who, before[i].memory, one.memory)
		}
		for name, n := range one.counts {
			if n > before[i].counts[name]+slack || n < 0 {
				r.t.Errorf("%s has %d %s, %d after the first round", one.who, n, name, before[i].counts[name])
			}
		}
	}
}
