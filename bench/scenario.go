// What is measured, and against what?
package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// scenario is one row of the report. Each kind is a file of its own with a
// function that returns its rows; a new one needs a file and a line below.
type scenario struct {
	name string
	page string // which tables of the report show it
	peer string // name of the scenario whose figures of the same round it is compared with; "" = none
	run  runner
}

// runner is one run of a scenario. An error that is an absent leaves the
// scenario out and says why; any other one is a failure of the run.
type runner func(ctx context.Context, st *stand, span time.Duration) (figures, error)

// absent is why a scenario cannot be run here: a peer that is not installed, a
// command that the daemon does not have.
type absent struct{ reason string }

func (a *absent) Error() string { return a.reason }

// scenarios in the order of the report.
func scenarios() []scenario {
	return slices.Concat(
		redsyncScenarios(),
		engineScenarios(),
		rawLaneScenarios(),
		multiplexedScenarios(),
		connectionScenarios(),
		secureScenarios(),
		daemonsScenarios(),
		floorScenarios(),
		redislockScenarios(),
		trackingScenarios(),
		nodeScenarios(),
		etcdScenarios(),
		fenceScenarios(),
		sizeScenarios(),
		sharedScenarios(),
		permitScenarios(),
		multiScenarios(),
		commandScenarios(),
		dropinScenarios(),
		holdScenarios(),
		listingScenarios(),
		handoverScenarios(),
		workScenarios(),
		idScenarios(),
		failureScenarios(),
	)
}

// choose keeps the scenarios that match, and what they are compared with.
func choose(all []scenario, only *regexp.Regexp) ([]scenario, error) {
	if only == nil {
		return all, nil
	}
	wanted := map[string]bool{}
	for _, s := range all {
		if only.MatchString(s.name) {
			wanted[s.name] = true
			wanted[s.peer] = true
		}
	}
	var chosen []scenario
	var names []string
	for _, s := range all {
		names = append(names, s.name)
		if wanted[s.name] {
			chosen = append(chosen, s)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("-only: %q matches none of: %s", only, strings.Join(names, "; "))
	}
	return chosen, nil
}

// crew are the workers of one scenario and what ends them.
type crew struct {
	workers []worker
	flushes func() (flushes, commands int64) // of the lanes, where they are in this process; else nil
	// daemons are those that the workers use; backends are the processes that
	// stand where the masters do, nil = the masters of the stand.
	daemons  []*daemon
	backends []int
	client   int // process of the workers; 0 = this one
	close    func()
}

// opener prepares n workers against the stand. On error nothing is left open.
type opener func(ctx context.Context, st *stand, n int) (crew, error)

const (
	// leaseTTL is every client's: long enough that nothing expires by itself.
	leaseTTL = 10 * time.Second
	// leaseMillis is the same on the wire.
	leaseMillis = "10000"
	// warmUp comes before every measurement: connections, scripts, buffers.
	warmUp = 300 * time.Millisecond
)

// Stages of a load: what happens before the first is not counted.
const (
	stageWarm = iota
	stageSteady
	stageShock
	stageAfter
	stageDone
)

// pairs is a run of uncontended acquires and releases by n workers.
func pairs(n int, open opener) runner {
	return func(ctx context.Context, st *stand, span time.Duration) (figures, error) {
		c, err := open(ctx, st, n)
		if err != nil {
			return nil, err
		}
		defer c.close()
		l := startLoad(c.workers)
		err = pause(ctx, warmUp)
		meter := openMeter(st, c)
		l.enter(stageSteady)
		began := time.Now()
		err = errors.Join(err, pause(ctx, span), meter.finish())
		took := time.Since(began)
		l.enter(stageDone)
		failed := l.stop()
		if err != nil {
			return nil, err
		}
		done, acquires := l.sum(stageSteady)
		if done == 0 {
			return nil, errors.Join(fmt.Errorf("no pair was completed within %v", span), failed)
		}
		f := meter.perPair(done)
		f[pairsPerSecond] = float64(done) / took.Seconds()
		f[acquireP50], f[acquireP90] = acquires.quantile(0.50), acquires.quantile(0.90)
		f[acquireP99], f[acquireP999] = acquires.quantile(0.99), acquires.quantile(0.999)
		if handed := l.handovers(stageSteady); handed > 0 {
			f[handoversPerSecond] = float64(handed) / took.Seconds()
		}
		f[failures] = float64(l.failed)
		st.note(failed)
		return f, nil
	}
}

// pause waits, or ends early with the context's error.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// callers says how many.
func callers(n int) string {
	if n == 1 {
		return "1 caller"
	}
	return fmt.Sprintf("%d callers", n)
}

// keysPerWorker lets a worker go on while the release of its last key is still
// on its way to the slower masters.
const keysPerWorker = 16

// workerKeys are a worker's own, made before the measurement.
func workerKeys(kind string, worker int) []string {
	keys := make([]string, keysPerWorker)
	for i := range keys {
		keys[i] = fmt.Sprintf("bench:%s:%d:%d", kind, worker, i)
	}
	return keys
}
