// What came of every run? Kept here round by round, until the report is made.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// book is what was measured, and why something was not.
type book struct {
	results results
	missing map[string]string // reason by scenario
	failed  error             // runs that should have come to an end and did not
}

func newBook() *book { return &book{results: results{}, missing: map[string]string{}} }

// measure runs the scenarios round by round. Every other round goes backwards,
// so that a machine that slowly gets busier favours nobody.
func (b *book) measure(ctx context.Context, st *stand, chosen []scenario, s settings, out io.Writer) error {
	start := time.Now()
	for round := range s.rounds {
		order := slices.Clone(chosen)
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for i, sc := range order {
			text := b.note(sc.name, func() (figures, error) { return sc.run(ctx, st, s.span) })
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

// note runs one scenario and says in a line what came of it. A run that fails
// keeps its place in the rounds, so that ratios are still between runs of one
// round; one that cannot be made here is not tried again.
func (b *book) note(name string, run func() (figures, error)) string {
	if why, ok := b.missing[name]; ok && b.results[name] == nil {
		return "left out: " + why
	}
	f, err := run()
	if left := new(absent); errors.As(err, &left) {
		b.missing[name] = left.reason
		return "left out: " + left.reason
	}
	b.results[name] = append(b.results[name], f)
	if err != nil {
		b.missing[name] = "a run failed: " + err.Error()
		b.failed = errors.Join(b.failed, fmt.Errorf("%s: %w", name, err))
		return "failed: " + err.Error()
	}
	return f.brief()
}
