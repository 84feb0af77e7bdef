// The command line and the run of the benchmark.

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"syscall"
	"time"
)

// settings are the options of the command line.
type settings struct {
	rounds  int            // the runs of each scenario
	span    time.Duration  // the measured time of each run
	only    *regexp.Regexp // scenarios to run, and with them their peers; nil = all
	masters int            // 3, 5, 7 or 9
	quick   bool           // only the scenarios of the targets
	dir     string         // of the masters' files
	profile string         // file of the daemon's profile, which is recorded instead of the measurements; "" = none
	out     string         // file of the report, which is written only if all scenarios ran; its charts are in charts/ beside it
}

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	cancel()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run runs the whole benchmark. ctx ends it early, with all processes that it started.
func run(ctx context.Context, args []string, out io.Writer) error {
	s, err := readSettings(args, out)
	if err != nil {
		return err
	}
	chosen, err := choose(scenarios(), s.only)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(s.dir, "redlockd-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	binary, err := buildDaemon(ctx, dir)
	if err != nil {
		return err
	}
	tb, err := startTestbed(ctx, dir, binary, testbedOptions{masters: s.masters}, out)
	if err != nil {
		return err
	}
	defer tb.close()
	if s.profile != "" {
		return recordProfile(ctx, tb, s.span, s.profile)
	}
	b := newMeasurements()
	if err := b.measure(ctx, tb, chosen, s, out); err != nil {
		return err
	}
	fmt.Fprint(out, "\n", report(describeMachine(tb, s), chosen, b.results, b.missing, false))
	if s.only == nil {
		err = publish(s.out, report(describeMachine(tb, s), chosen, b.results, b.missing, true), b.results)
	}
	return errors.Join(err, b.failed)
}

func readSettings(args []string, out io.Writer) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.IntVar(&s.rounds, "rounds", 5, "how often every scenario runs; fewer than 4 tell little")
	seconds := flags.Float64("seconds", 2, "how long each run is measured")
	flags.BoolVar(&s.quick, "quick", false, "only what is promised and its peers; no report is written")
	only := flags.String("only", "", "`regexp` of the scenarios to run with their peers; without it "+
		"all run and the report is written")
	flags.IntVar(&s.masters, "masters", 5, "number of redis-servers: 3, 5, 7 or 9")
	flags.StringVar(&s.dir, "dir", "", "`directory` for the masters' files; without it that for temporary files")
	flags.StringVar(&s.profile, "profile", "", "`file` for a profile of the daemon under various loads; nothing else is run")
	flags.StringVar(&s.out, "out", "RESULTS.md", "`file` of the report")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	s.span = time.Duration(*seconds * float64(time.Second))
	switch {
	case flags.NArg() > 0:
		return s, fmt.Errorf("%q belongs to no option, see -help", flags.Arg(0))
	case s.rounds < 1 || s.rounds > 1000:
		return s, fmt.Errorf("-rounds: %d, allowed are 1 to 1000", s.rounds)
	case s.span < 100*time.Millisecond || s.span > time.Minute:
		return s, fmt.Errorf("-seconds: %g, allowed are 0.1 to 60", *seconds)
	case !slices.Contains([]int{3, 5, 7, 9}, s.masters):
		return s, fmt.Errorf("-masters: %d, allowed are 3, 5, 7 and 9", s.masters)
	}
	if *only == "" {
		if s.quick {
			s.only = aimed()
		}
		return s, nil
	}
	var err error
	if s.only, err = regexp.Compile(*only); err != nil {
		return s, fmt.Errorf("-only: %w", err)
	}
	return s, nil
}
