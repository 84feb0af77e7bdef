//go:build linux

package proxy

// counters_session_test.go: what a command and a connection cost at the edge,
// counted, so that a change for the worse shows without a stopwatch.

import (
	"bytes"
	"io"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// counterSlack is how much worse than its base a counter may be.
const counterSlack = 1.10

// counter is one count, and its value at the last read.
type counter struct {
	name string
	base float64
}

// check fails with the number. What has become better for good should be the new
// base, or the next change may take it away again.
func (c counter) check(t *testing.T, got float64) {
	t.Helper()
	t.Logf("%s: %.2f, base %.2f", c.name, got, c.base)
	if got > c.base*counterSlack {
		t.Errorf("%s: %.2f are %.0f %% more than the base of %.2f, at most 10 %% are allowed", c.name, got, 100*(got/c.base-1), c.base)
	}
}

// ioCalls counts this process's reads and writes so far.
func ioCalls(t *testing.T) float64 {
	t.Helper()
	text, err := os.ReadFile("/proc/self/io")
	if err != nil {
		t.Skipf("the system does not tell: %v", err)
	}
	calls := 0.0
	for line := range bytes.Lines(text) {
		name, value, _ := bytes.Cut(bytes.TrimSpace(line), []byte(": "))
		if string(name) == "syscr" || string(name) == "syscw" {
			n, _ := strconv.ParseFloat(string(value), 64)
			calls += n
		}
	}
	return calls
}

// pipeline sends a pipeline again and again, and returns the least that one
// cost. The client is in this process, too: a write, and one or two reads.
func pipeline(t *testing.T, depth int) (mallocs, calls float64) {
	t.Helper()
	s := serve(t, Options{}, atOnce{})
	conn, err := net.Dial("tcp", s.Addrs()[0])
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	request := []byte(strings.Repeat(command("DLOCK", "invoices:4711", "30000"), depth))
	reply := make([]byte, depth*len("+OK\r\n"))
	const runs, pipelines = 25, 40
	for range runs {
		var before, after runtime.MemStats
		callsBefore := ioCalls(t)
		runtime.ReadMemStats(&before)
		for range pipelines {
			if _, err := conn.Write(request); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(conn, reply); err != nil {
				t.Fatal(err)
			}
		}
		runtime.ReadMemStats(&after)
		callsAfter := ioCalls(t)
		keepLeast(&mallocs, float64(after.Mallocs-before.Mallocs)/pipelines)
		keepLeast(&calls, (callsAfter-callsBefore)/pipelines)
	}
	return mallocs, calls
}

func keepLeast(to *float64, value float64) {
	if *to == 0 || value < *to {
		*to = value
	}
}

func TestCounters_OfACommandAtTheEdgeAreNotWorseThanTheirBase(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates")
	}
	mallocs, calls := pipeline(t, 1)
	counter{"allocations per command, alone", 3.25}.check(t, mallocs)
	// A write and at most two reads on either side.
	counter{"reads and writes per command, alone", 6}.check(t, calls)
	mallocs, calls = pipeline(t, 16)
	counter{"allocations per command, 16 in a pipeline", 2.4}.check(t, mallocs/16)
	counter{"reads and writes per pipeline of 16", 6}.check(t, calls)
}

func TestCounters_OfAnIdleConnectionAreNotWorseThanTheirBase(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector keeps memory of its own")
	}
	const clients = 2000
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur < 2*clients+200 {
		t.Skipf("needs %d open files, the limit is %d", 2*clients+200, limit.Cur)
	}
	for _, c := range []struct {
		counter   counter
		restAfter time.Duration
	}{
		{counter{name: "bytes per idle connection", base: 16550}, time.Hour},
		{counter{name: "bytes per connection that rests", base: 8150}, 10 * time.Millisecond},
	} {
		s := serve(t, Options{restAfter: c.restAfter}, newDispatcher())
		port := s.listeners[0].Addr().(*net.TCPAddr).Port
		warm := connect(t, port, 50)
		before := inUse()
		idle := connect(t, port, clients)
		if c.restAfter < time.Hour {
			for end := time.Now().Add(testTimeout); resting() < 50+clients && time.Now().Before(end); {
				time.Sleep(10 * time.Millisecond)
			}
		}
		c.counter.check(t, float64(inUse()-before)/clients)
		runtime.KeepAlive(warm)
		runtime.KeepAlive(idle)
	}
}
