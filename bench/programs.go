// Peers in other languages: programs in a process of their own, kept under
// peers/, that make the same load and say what came of it. What they need is
// installed by ./install-peers; without it their scenarios are left out.
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

// program is how a peer is started: words, then those that every peer takes,
// which are the callers, the seconds of warm-up and of measurement, and addresses.
type program struct {
	name    string // for its output
	needs   string // file or directory that must be there
	words   []string
	masters int // how many addresses it takes; 0 = all
}

// peerHome is where ./install-peers puts things.
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

// needPeer is the reason when a peer is not installed.
func needPeer(path string) error {
	if _, err := os.Stat(path); err != nil {
		return &absent{fmt.Sprintf("not installed (%s); ./install-peers installs it where it can", filepath.Base(path))}
	}
	return nil
}

// told is the line that a program ends with; times are in µs.
type told struct {
	Pairs  int64   `json:"pairs"`
	Failed int64   `json:"failed"`
	Took   float64 `json:"seconds"`
	Handed int64   `json:"handed"`
	P50    float64 `json:"p50"`
	P90    float64 `json:"p90"`
	P99    float64 `json:"p99"`
	P999   float64 `json:"p999"`
}

// begun is the line by which a program says that it is warm and measures now.
const begun = "begin\n"

// programRun is a scenario whose workers are in the program.
func programRun(p program, n int) runner {
	return func(ctx context.Context, st *stand, span time.Duration) (figures, error) {
		if err := needPeer(p.needs); err != nil {
			return nil, err
		}
		addresses := st.addresses()
		if p.masters > 0 {
			addresses = addresses[:p.masters]
		}
		words := append(append([]string{}, p.words[1:]...), strconv.Itoa(n), seconds(warmUp), seconds(span))
		output, err := os.CreateTemp(st.dir, p.name)
		if err != nil {
			return nil, err
		}
		output.Close()
		run, err := startProcess(exec.Command(p.words[0], append(words, addresses...)...), output.Name())
		if err != nil {
			return nil, err
		}
		defer run.kill()
		return measureProgram(ctx, st, run, p.name)
	}
}

func measureProgram(ctx context.Context, st *stand, run *process, name string) (figures, error) {
	over := func(happened func() bool) func() bool { return func() bool { return ctx.Err() != nil || happened() } }
	if err := run.until(name+" warms up", over(func() bool { return strings.Contains(run.text(), begun) })); err != nil {
		return nil, err
	}
	meter := openMeter(st, crew{client: run.pid()})
	var end told
	err := run.until(name+" measures", over(func() bool {
		_, line, _ := strings.Cut(run.text(), begun)
		return strings.HasSuffix(line, "\n") && json.Unmarshal([]byte(line), &end) == nil
	}))
	if err = errors.Join(err, meter.finish(), ctx.Err()); err != nil {
		return nil, err
	}
	if end.Pairs == 0 {
		return nil, fmt.Errorf("%s completed no pair: %s", name, run.text())
	}
	f := meter.perPair(end.Pairs)
	delete(f, mallocs) // of this process
	f[pairsPerSecond] = float64(end.Pairs) / end.Took
	f[acquireP50], f[acquireP90], f[acquireP99], f[acquireP999] = end.P50, end.P90, end.P99, end.P999
	if end.Handed > 0 {
		f[handoversPerSecond] = float64(end.Handed) / end.Took
	}
	f[failures] = float64(end.Failed)
	return f, nil
}

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 3, 64) }
