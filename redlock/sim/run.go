package sim

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// Plan is what is to be played, and how much of it.
type Plan struct {
	Scenarios  []*Scenario
	Seed       uint64 // the first
	Threads    int    // worlds at a time, each in one thread
	Time       time.Duration
	Executions int64 // stop when so many are reached; 0 = only the time counts
	Progress   io.Writer
}

// Result adds up what was played of one scenario.
type Result struct {
	Scenario   string
	Worlds     int64
	Executions int64 // commands of operations, and seals
	Commands   int64 // all commands on all masters
	Steps      int64 // events
	Checked    int64 // answers that the checker compared
	Grants     int64
	Violations []*WorldViolation
}

// RunReport is the outcome of a plan.
type RunReport struct {
	Seeds   [2]uint64 // first and last
	Results []Result
	Elapsed time.Duration
}

// Total of all scenarios.
func (r *RunReport) Total() (sum Result) {
	for _, one := range r.Results {
		sum.add(one)
	}
	return sum
}

func (r *Result) add(o Result) {
	r.Worlds += o.Worlds
	r.Executions += o.Executions
	r.Commands += o.Commands
	r.Steps += o.Steps
	r.Checked += o.Checked
	r.Grants += o.Grants
	r.Violations = append(r.Violations, o.Violations...)
}

// runner hands out worlds: seed by seed, every scenario in turn.
type runner struct {
	plan  Plan
	start time.Time

	mu         sync.Mutex
	next       int
	report     RunReport
	over       bool
	reportedAt time.Time
}

// Run plays until the plan is fulfilled or something is violated.
func Run(p Plan) *RunReport {
	r := &runner{plan: p, start: time.Now(), reportedAt: time.Now()}
	r.report.Seeds = [2]uint64{p.Seed, p.Seed}
	for _, s := range p.Scenarios {
		r.report.Results = append(r.report.Results, Result{Scenario: s.Name})
	}
	var all sync.WaitGroup
	for range max(1, p.Threads) {
		all.Go(r.play)
	}
	all.Wait()
	r.report.Elapsed = time.Since(r.start)
	return &r.report
}

// play is one thread.
func (r *runner) play() {
	lab := NewLab()
	for {
		i, seed, more := r.take()
		if !more {
			return
		}
		s := r.plan.Scenarios[i]
		w := NewWorld(s, seed, lab)
		v := w.Play()
		if v != nil { // once more, to see why
			if again := Replay(s, seed, io.Discard); again != nil {
				v = again
			} else {
				v.Why += " (and not when it was played again: part of the product does not depend on the seed)"
			}
		}
		r.note(i, w, v)
	}
}

func (r *runner) take() (scenario int, seed uint64, more bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over || len(r.plan.Scenarios) == 0 || time.Since(r.start) > r.plan.Time {
		return 0, 0, false
	}
	n := r.next
	r.next++
	seed = r.plan.Seed + uint64(n/len(r.plan.Scenarios))
	r.report.Seeds[1] = seed
	return n % len(r.plan.Scenarios), seed, true
}

func (r *runner) note(i int, w *World, v *WorldViolation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	one := Result{Worlds: 1, Executions: w.executions, Commands: w.commands, Steps: w.steps, Checked: w.checker().checked, Grants: w.checker().grants}
	if v != nil {
		one.Violations = append(one.Violations, v)
		r.over = r.over || w.Scenario.Open == ""
	}
	r.report.Results[i].add(one)
	sum := r.report.Total()
	if r.plan.Executions > 0 && sum.Executions >= r.plan.Executions {
		r.over = true
	}
	if out := r.plan.Progress; out != nil && time.Since(r.reportedAt) > 10*time.Second {
		r.reportedAt = time.Now()
		fmt.Fprintf(out, "%v: %d worlds, seeds %d to %d, %.1f million executions, %d violations\n",
			time.Since(r.start).Round(time.Second), sum.Worlds, r.report.Seeds[0], r.report.Seeds[1],
			float64(sum.Executions)/1e6, len(sum.Violations))
	}
}

// Table is the report in Markdown.
func (r *RunReport) Table() string {
	var out strings.Builder
	fmt.Fprintln(&out, "| scenario | worlds | executions | commands | events | answers checked | locks and attempts granted | violations |")
	fmt.Fprintln(&out, "|---|---:|---:|---:|---:|---:|---:|---:|")
	row := func(one *Result) {
		fmt.Fprintf(&out, "| %s | %d | %d | %d | %d | %d | %d | %d |\n", one.Scenario, one.Worlds,
			one.Executions, one.Commands, one.Steps, one.Checked, one.Grants, len(one.Violations))
	}
	for i := range r.Results {
		row(&r.Results[i])
	}
	sum := r.Total()
	sum.Scenario = "**all**"
	row(&sum)
	return out.String()
}

// Violated are the violations of what is required.
func (r *RunReport) Violated() (all []*WorldViolation) {
	for _, v := range r.Total().Violations {
		if s := Find(v.Scenario); s == nil || s.Open == "" {
			all = append(all, v)
		}
	}
	return all
}
