package chaos

// figures_test.go: the figures of a run, as a row of a table. A whole run of
// `make chaos` with CHAOS_PUBLISH=1 puts the table into RESULTS.md, if nothing failed.

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"redlockd/redlock/mutants"
)

// figures of one run.
type figures struct {
	mix                      string
	masters, daemons         int
	load                     time.Duration
	asked, undecided, faults int
	violations, leftovers    int
	firstGrants              []time.Duration // after a majority came back
}

// take reads them off a run that has been checked.
func (f *figures) take(r *run, load time.Duration) {
	f.mix, f.masters, f.daemons, f.load = r.mix.name, r.mix.plan.masters, r.mix.plan.daemons, load
	f.violations, f.leftovers = len(r.t.sentences()), r.stand.leftovers
	r.answers.mu.Lock()
	defer r.answers.mu.Unlock()
	f.asked = r.answers.asked
	for _, n := range r.answers.codes {
		f.undecided += n
	}
	r.nemesis.mu.Lock()
	defer r.nemesis.mu.Unlock()
	for _, n := range r.nemesis.count {
		f.faults += n
	}
}

func (f *figures) row() string {
	return fmt.Sprintf("| %s | %d | %d | %v | %d | %d | %d | %d | %d | %s | %s | %s |\n", f.mix, f.masters, f.daemons, f.load.Round(time.Second),
		f.asked, f.undecided, f.faults, f.violations, f.leftovers, f.grant(0.5), f.grant(0.9), f.grant(1))
}

// grant is a quantile of the times to the first grant.
func (f *figures) grant(part float64) string {
	n := len(f.firstGrants)
	if n == 0 {
		return "–"
	}
	sorted := slices.Sorted(slices.Values(f.firstGrants))
	return fmt.Sprintf("%.1f ms", sorted[min(int(part*float64(n)), n-1)].Seconds()*1000)
}

// table of all runs, with their sum.
func table(all []figures) string {
	var out strings.Builder
	out.WriteString("| mix | masters | daemons | load | calls | not decided | faults | violations | keys left over | first grant: median | nine of ten within | all within |\n")
	out.WriteString("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n")
	sum := figures{mix: "**all**"}
	for i := range all {
		f := &all[i]
		out.WriteString(f.row())
		sum.load += f.load
		sum.asked += f.asked
		sum.undecided += f.undecided
		sum.faults += f.faults
		sum.violations += f.violations
		sum.leftovers += f.leftovers
		sum.firstGrants = append(sum.firstGrants, f.firstGrants...)
	}
	out.WriteString(strings.Replace(sum.row(), "| 0 | 0 |", "| | |", 1))
	return out.String()
}

// publish writes the table into RESULTS.md.
func publish(t *testing.T, load time.Duration, all []figures) {
	t.Helper()
	text := fmt.Sprintf("`make chaos`, %s: %v of load.\n\n%s", time.Now().UTC().Format(time.DateOnly), load.Round(time.Second), table(all))
	if err := mutants.WriteResults("RESULTS.md", "chaos", text); err != nil {
		t.Fatal(err)
	}
}
