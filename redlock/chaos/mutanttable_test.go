package chaos

// mutanttable_test.go: the table of seeded bugs and their outcomes, as
// redlock/mutants/RESULTS.md shows it. `make mutation-e2e` writes the whole table; with
// RIG_PUBLISH=1 a run of some of them replaces their rows.

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"redlockd/redlock/mutants"
)

const (
	resultsPage = "../mutants/RESULTS.md"
	resultsPart = "mutation-e2e"
)

// preyTable is the rows, by mutant; those without a fault by their mix.
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
		by, where = "not hunted: it takes "+needs, "–"
	}
	p[key] = fmt.Sprintf("| %s | %s | %s | %s |", one.name(), by, where, seconds)
}

// rows in the order of the mutants, and of the hunts.
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

func (p mutantTable) text() string {
	return "| mutant | caught by | mix | seconds |\n|---|---|---|---:|\n" + strings.Join(p.rows(), "\n") + "\n"
}

func (p mutantTable) publish(t *testing.T) {
	t.Helper()
	caught, hunted, passed := 0, 0, 0
	for _, row := range p.rows() {
		switch cells := strings.Split(row, " | "); {
		case cells[0] == "| "+unbroken:
			passed++
		case strings.HasPrefix(cells[1], "not "):
			hunted++
		default:
			caught++
			hunted++
		}
	}
	intro := fmt.Sprintf("`make mutation-e2e`, %s, two at a time on two cores, at most %v of load a mutant: **%d of %d caught**. A daemon without a fault (%s) is caught by nothing, in %d mixes and the seconds shown.\n\n",
		time.Now().UTC().Format(time.DateOnly), searchTime, caught, hunted, unbroken, passed)
	if err := mutants.WriteResults(resultsPage, resultsPart, intro+p.text()); err != nil {
		t.Error(err)
	}
}

func readMutantTable(t *testing.T) mutantTable {
	t.Helper()
	page, err := os.ReadFile(resultsPage)
	if err != nil {
		t.Fatal(err)
	}
	_, part, _ := strings.Cut(string(page), "<!-- "+resultsPart+" begin")
	part, _, _ = strings.Cut(part, "<!-- "+resultsPart+" end")
	p := mutantTable{}
	for line := range strings.SplitSeq(part, "\n") {
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if len(cells) != 4 || cells[0] == "mutant" {
			continue
		}
		key := cells[0]
		if key == unbroken {
			key += " " + cells[2]
		}
		p[key] = line
	}
	return p
}
