// The measurements: the results of all runs, round by round, for the report.

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// measurements has the results, and the reasons for those that are missing.
type measurements struct {
	results results
	missing map[string]string // reason by scenario
	failed  error             // runs that failed
}

func newMeasurements() *measurements {
	return &measurements{results: results{}, missing: map[string]string{}}
}

// measure runs the scenarios round by round. Every other round runs backwards, so a machine
// that slowly gets busier favours no scenario.
func (m *measurements) measure(ctx context.Context, tb *testbed, chosen []scenario, s settings, out io.Writer) error {
	start := time.Now()
	for round := range s.rounds {
		order := slices.Clone(chosen)
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for i, sc := range order {
			text := m.record(sc.name, func() (figures, error) { return sc.run(ctx, tb, s.span) })
			if ctx.Err() != nil {
				return fmt.Errorf("%s: %w", sc.name, ctx.Err())
			}
			done := round*len(order) + i + 1
			fmt.Fprintf(out, "%v  round %d/%d  %d/%d  %-44s %s\n", time.Since(start).Round(time.Second),
				round+1, s.rounds, done, s.rounds*len(order), sc.name, text)
		}
	}
	return nil
}

// record runs one scenario and returns a line about the result. A failed run keeps its place
// in the rounds, so ratios stay between runs of one round. A scenario that is unavailable is
// not tried again.
func (m *measurements) record(name string, run func() (figures, error)) string {
	if why, ok := m.missing[name]; ok && m.results[name] == nil {
		return "left out: " + why
	}
	f, err := run()
	if left := new(unavailable); errors.As(err, &left) {
		m.missing[name] = left.reason
		return "left out: " + left.reason
	}
	m.results[name] = append(m.results[name], f)
	if err != nil {
		m.missing[name] = "a run failed: " + err.Error()
		m.failed = errors.Join(m.failed, fmt.Errorf("%s: %w", name, err))
		return "failed: " + err.Error()
	}
	return f.brief()
}
