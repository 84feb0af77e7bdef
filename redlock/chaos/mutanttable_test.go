package chaos

// mutanttable_test.go: the table of seeded bugs and their outcomes. `make mutation-e2e` puts
// those that were not caught into redlock/mutants/RESULTS.md.

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"redlockd/redlock/mutants"
)

const (
	resultsPage = "../mutants/RESULTS.md"
	resultsPart = "mutation-e2e"
)

// mutantTable is the rows, by mutant; those without a fault by their mix.
type mutantTable map[string]string

func (p mutantTable) add(one *mutantRun) {
	key, by, where, seconds := one.name(), fmt.Sprintf("not in %v", searchTime), one.search, "–"
	switch needs := beyond(key); {
	case one.mutant == nil && one.outcome.Caught:
		key, by = unbroken+" "+where, "**"+one.outcome.By+"**"
	case one.mutant == nil:
		key, by, seconds = unbroken+" "+where, "nothing", fmt.Sprintf("%.0f", one.outcome.Seconds)
	case one.outcome.Caught:
		by, seconds = one.outcome.By, fmt.Sprintf("%.1f", one.outcome.Seconds)
	case needs != "":
		by, where = "not searched: it takes "+needs, "–"
	}
	p[key] = fmt.Sprintf("| %s | %s | %s | %s |", one.name(), by, where, seconds)
}

// rows are in the order of the mutants, and of the searches.
func (p mutantTable) rows() (rows []string) {
	for _, m := range mutants.All() {
		if row, ok := p[m.Name]; ok {
			rows = append(rows, row)
		}
	}
	for _, h := range searches() {
		if row, ok := p[unbroken+" "+h.name]; ok {
			rows = append(rows, row)
		}
	}
	return rows
}

func (p mutantTable) text() string { return tableOf(p.rows()) }

func tableOf(rows []string) string {
	return "| mutant | caught by | mix | seconds |\n|---|---|---|---:|\n" + strings.Join(rows, "\n") + "\n"
}

func (p mutantTable) publish(t *testing.T) {
	t.Helper()
	caught, searched, passed := 0, 0, 0
	for _, row := range p.rows() {
		switch cells := strings.Split(row, " | "); {
		case cells[0] == "| "+unbroken:
			passed++
		case strings.HasPrefix(cells[1], "not "):
			searched++
		default:
			caught++
			searched++
		}
	}
	intro := fmt.Sprintf("`make mutation-e2e`, %s, two at a time on two cores, at most %v of load a mutant: **%d of %d caught**. A daemon without a fault (%s) is caught by nothing, in %d mixes.\n\n",
		time.Now().UTC().Format(time.DateOnly), searchTime, caught, searched, unbroken, passed)
	if err := mutants.WriteResults(resultsPage, resultsPart, intro+p.left()); err != nil {
		t.Error(err)
	}
}

// left lists what was not caught, with its mix, by the reason.
func (p mutantTable) left() string {
	var reasons []string
	of := map[string][]string{}
	for _, row := range p.rows() {
		cells := strings.Split(strings.TrimPrefix(row, "| "), " | ")
		name, by, mix := cells[0], cells[1], cells[2]
		if !strings.HasPrefix(by, "not ") {
			continue
		}
		if of[by] == nil {
			reasons = append(reasons, by)
		}
		if mix != "–" {
			name += " (" + mix + ")"
		}
		of[by] = append(of[by], name)
	}
	text := ""
	for _, by := range reasons {
		text += "- " + by + ": " + strings.Join(of[by], ", ") + "\n"
	}
	return text
}

func TestMutantTable_ListsWhatWasNotCaughtByItsReason(t *testing.T) {
	all := mutants.All()
	p := mutantTable{
		all[0].Name: "| " + all[0].Name + " | the checker | a mix | 1.0 |", all[1].Name: "| " + all[1].Name + " | not in 40s | a mix | – |",
		all[2].Name: "| " + all[2].Name + " | not searched: it takes a disk | – | – |", all[3].Name: "| " + all[3].Name + " | not in 40s | another | – |",
	}
	want := "- not in 40s: " + all[1].Name + " (a mix), " + all[3].Name + " (another)\n- not searched: it takes a disk: " + all[2].Name + "\n"
	if got := p.left(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
