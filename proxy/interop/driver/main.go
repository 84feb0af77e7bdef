// The driver runs real client libraries through one story against redlockd on three real
// Redis masters, and writes the results of each into a table. This file has the order of
// a run. README.md in the parent directory describes the story, and the protocol between
// the driver and the programs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
	"time"
)

// options of one run.
type options struct {
	programs string        // proxy/interop, where the programs' sources are
	built    string        // where .ci/interop built what needs building
	daemon   string        // binary; empty: built from the source around the programs
	results  string        // the table's file; empty: not written
	only     string        // runs whose name matches, all if empty
	measure  string        // "rolling" or "pollers": this table instead of the stories
	jobs     int           // stories at a time
	patience time.Duration // for one story
}

func main() {
	var o options
	flag.StringVar(&o.programs, "programs", "..", "directory of the programs")
	flag.StringVar(&o.built, "built", "", "directory in which .ci/interop built them")
	flag.StringVar(&o.daemon, "daemon", "", "redlockd binary, instead of one built from this source")
	flag.StringVar(&o.results, "results", "", "file for the table of results")
	flag.StringVar(&o.only, "only", "", "regular expression: the runs to do")
	flag.StringVar(&o.measure, "measure", "", "rolling or pollers: write this table instead of playing the stories")
	flag.IntVar(&o.jobs, "jobs", 2, "stories at a time")
	flag.DurationVar(&o.patience, "patience", 120*time.Second, "time limit of one story")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := drive(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// drive does all runs and writes the table. The error says how many failed, or
// why there was nothing to run against.
func drive(ctx context.Context, o options) error {
	all := runs()
	switch o.measure {
	case "rolling":
		all = rollingRuns()
	case "pollers":
		all = pollerRuns()
	}
	chosen, err := choose(all, o.only)
	if err != nil {
		return err
	}
	if o.programs, err = filepath.Abs(o.programs); err != nil {
		return err
	}
	if o.built, err = filepath.Abs(o.built); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "redlockd-interop-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	stand, err := startStand(ctx, o, dir)
	if err != nil {
		return err
	}
	defer stand.close()
	if o.measure == "rolling" {
		text, err := roll(ctx, o, stand, chosen)
		if err != nil || o.results == "" || o.only != "" {
			return err
		}
		return putChapter(o.results, "A rolling restart", text)
	}
	if o.measure == "pollers" {
		text, err := pollAll(ctx, o, stand, chosen)
		if err != nil || o.results == "" || o.only != "" {
			return err
		}
		return putChapter(o.results, "Clients that poll", text)
	}
	outcomes := playAll(ctx, o, stand, chosen)
	if o.results != "" && o.only == "" && ctx.Err() == nil {
		if err := putTable(o.results, table(outcomes, stand.described)); err != nil {
			return err
		}
	}
	return errors.Join(ctx.Err(), verdict(outcomes))
}

func choose(all []run, only string) ([]run, error) {
	pattern, err := regexp.Compile(only)
	if err != nil {
		return nil, err
	}
	var chosen []run
	for _, r := range all {
		if pattern.MatchString(r.name()) {
			chosen = append(chosen, r)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("-only %q matches no run", only)
	}
	return chosen, nil
}

// playAll keeps o.jobs stories going and prints a line for each that ends. A library's own
// tests sleep for minutes: they begin first, beside the stories.
func playAll(ctx context.Context, o options, stand *stand, chosen []run) []outcome {
	outcomes := make([]outcome, len(chosen))
	next := make(chan int, len(chosen)) // all of them: the filler never waits
	jobs := o.jobs
	for i, r := range chosen {
		if r.suite {
			next <- i
			jobs++
		}
	}
	for i, r := range chosen {
		if !r.suite {
			next <- i
		}
	}
	close(next)
	var players sync.WaitGroup
	var mu sync.Mutex // one line at a time
	for range jobs {
		players.Go(func() {
			for i := range next {
				outcomes[i] = play(ctx, o, stand, chosen[i], i)
				mu.Lock()
				fmt.Println(outcomes[i].line())
				mu.Unlock()
			}
		})
	}
	players.Wait()
	return outcomes
}

func verdict(outcomes []outcome) error {
	failed := 0
	for _, o := range outcomes {
		if o.problem != "" {
			failed++
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d runs failed", failed, len(outcomes))
	}
	return nil
}

// commandOf is a run's program with its place filled in: {built} and {programs}.
func commandOf(ctx context.Context, o options, r run) *exec.Cmd {
	args := make([]string, len(r.command))
	for i, a := range r.command {
		args[i] = placed(a, o)
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	for _, e := range r.environ {
		cmd.Env = append(cmd.Env, placed(e, o))
	}
	return cmd
}
