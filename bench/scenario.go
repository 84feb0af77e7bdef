// Scenarios: what is measured, and the peer that each is compared with.

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

// scenario is one row of the report. Each kind has its own file with a function that
// returns its rows. A new kind needs a file and a line below.
type scenario struct {
	name string
	page string // selects the tables of the report that show it
	peer string // name of the scenario that it is compared with, by figures of the same round; "" = none
	run  runner
}

// runner is one run of a scenario. An error of type unavailable leaves the scenario out,
// with its reason. Any other error is a failure of the run.
type runner func(ctx context.Context, tb *testbed, span time.Duration) (figures, error)

// unavailable is the reason why a scenario cannot run here: a peer is not installed, or the
// daemon lacks a command.
type unavailable struct{ reason string }

func (a *unavailable) Error() string { return a.reason }

// scenarios returns all scenarios in the order of the report.
func scenarios() []scenario {
	return slices.Concat(
		redsyncScenarios(),
		engineScenarios(),
		rawLaneScenarios(),
		multiplexedScenarios(),
		connectionScenarios(),
		secureScenarios(),
		daemonsScenarios(),
		groupScenarios(),
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
		distanceScenarios(),
		hotKeyScenarios(),
		workScenarios(),
		idScenarios(),
		failureScenarios(),
	)
}

// choose keeps the scenarios that match, and their peers.
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

// workerSet has the workers of one scenario, and the function that closes them.
type workerSet struct {
	workers []worker
	flushes func() (flushes, commands int64) // of the lanes if they are in this process, else nil
	// daemons are the daemons that the workers use. backends are the processes that
	// take the place of the masters, nil = the masters of the testbed.
	daemons  []*daemon
	backends []int
	client   int // the process of the workers; 0 = this process
	close    func()
}

// opener prepares n workers on the testbed. On error it leaves nothing open.
type opener func(ctx context.Context, tb *testbed, n int) (workerSet, error)

const (
	// leaseTTL is the lease of every client: long enough that no lease expires.
	leaseTTL = 10 * time.Second
	// leaseMillis is leaseTTL on the wire.
	leaseMillis = "10000"
	// warmUp runs before every measurement, for connections, scripts and buffers.
	warmUp = 300 * time.Millisecond
)

// Stages of a load. stageWarm is not counted.
const (
	stageWarm = iota
	stageSteady
	stageFault
	stageAfter
	stageDone
)

// pairs is a run of uncontended acquires and releases by n workers.
func pairs(n int, open opener) runner {
	return func(ctx context.Context, tb *testbed, span time.Duration) (figures, error) {
		c, err := open(ctx, tb, n)
		if err != nil {
			return nil, err
		}
		defer c.close()
		l := startLoad(c.workers)
		err = pause(ctx, warmUp)
		meter := openMeter(tb, c)
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
		tb.warn(failed)
		return f, nil
	}
}

// pause waits, or returns the error of the context when that ends.
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

// callers is the number of callers in the name of a scenario.
func callers(n int) string {
	if n == 1 {
		return "1 caller"
	}
	return fmt.Sprintf("%d callers", n)
}

// keysPerWorker lets a worker continue while the release of its last key is still on its
// way to the slower masters.
const keysPerWorker = 16

// workerKeys are the keys of one worker, built before the measurement.
func workerKeys(kind string, worker int) []string {
	keys := make([]string, keysPerWorker)
	for i := range keys {
		keys[i] = fmt.Sprintf("bench:%s:%d:%d", kind, worker, i)
	}
	return keys
}
