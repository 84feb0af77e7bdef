// Peers in other languages. Each is a program in its own process, kept in peers/, that
// makes the same load and prints its results. ./install-peers installs what they need.
// Without it their scenarios are left out.

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// program is the command line of a peer: words, then the arguments of every peer. Those are
// the number of callers, the seconds of warm-up and of measurement, and addresses.
type program struct {
	name    string // for its output
	needs   string // file or directory that must exist
	words   []string
	masters int // number of addresses that it takes; 0 = all
}

// peerHome is the directory of ./install-peers.
func peerHome() string {
	if home := os.Getenv("BENCH_PEERS"); home != "" {
		return home
	}
	home, err := os.UserCacheDir()
	if err != nil {
		home = os.TempDir()
	}
	return filepath.Join(home, "redlockd-bench")
}

// needPeer returns an error if a peer is not installed.
func needPeer(path string) error {
	if _, err := os.Stat(path); err != nil {
		return &unavailable{fmt.Sprintf("not installed (%s); ./install-peers installs it where it can", filepath.Base(path))}
	}
	return nil
}

// programResult is the last line of a program. Its times are in µs.
type programResult struct {
	Pairs  int64   `json:"pairs"`
	Failed int64   `json:"failed"`
	Took   float64 `json:"seconds"`
	Handed int64   `json:"handed"`
	P50    float64 `json:"p50"`
	P90    float64 `json:"p90"`
	P99    float64 `json:"p99"`
	P999   float64 `json:"p999"`
}

// beginLine is the line that a program prints when its warm-up ends and it starts to measure.
const beginLine = "begin\n"

// programRun runs a scenario whose workers are in the program.
func programRun(p program, n int) runner {
	return func(ctx context.Context, tb *testbed, span time.Duration) (figures, error) {
		if err := needPeer(p.needs); err != nil {
			return nil, err
		}
		addresses := tb.addresses()
		if p.masters > 0 {
			addresses = addresses[:p.masters]
		}
		words := append(append([]string{}, p.words[1:]...), strconv.Itoa(n), seconds(warmUp), seconds(span))
		output, err := os.CreateTemp(tb.dir, p.name)
		if err != nil {
			return nil, err
		}
		output.Close()
		run, err := startProcess(exec.Command(p.words[0], append(words, addresses...)...), output.Name())
		if err != nil {
			return nil, err
		}
		defer run.kill()
		return measureProgram(ctx, tb, run, p.name)
	}
}

func measureProgram(ctx context.Context, tb *testbed, run *process, name string) (figures, error) {
	over := func(happened func() bool) func() bool { return func() bool { return ctx.Err() != nil || happened() } }
	if err := run.waitFor(name+" warms up", over(func() bool { return strings.Contains(run.text(), beginLine) })); err != nil {
		return nil, err
	}
	meter := openMeter(tb, workerSet{client: run.pid()})
	var end programResult
	err := run.waitFor(name+" measures", over(func() bool {
		_, line, _ := strings.Cut(run.text(), beginLine)
		return strings.HasSuffix(line, "\n") && json.Unmarshal([]byte(line), &end) == nil
	}))
	if err = errors.Join(err, meter.finish(), ctx.Err()); err != nil {
		return nil, err
	}
	if end.Pairs == 0 {
		return nil, fmt.Errorf("%s completed no pair: %s", name, run.text())
	}
	f := meter.perPair(end.Pairs)
	delete(f, mallocs) // these are of this process
	f[pairsPerSecond] = float64(end.Pairs) / end.Took
	f[acquireP50], f[acquireP90], f[acquireP99], f[acquireP999] = end.P50, end.P90, end.P99, end.P999
	if end.Handed > 0 {
		f[handoversPerSecond] = float64(end.Handed) / end.Took
	}
	f[failures] = float64(end.Failed)
	return f, nil
}

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 3, 64) }
