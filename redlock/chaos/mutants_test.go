package chaos

// mutants_test.go: mutation tests with processes. The product with one fault, as the
// simulation plays it, runs as processes; the table of what is caught goes into
// redlock/mutants/RESULTS.md.

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"redlockd/redlock/mutants"
)

const (
	// searchTime is how long a search for a mutant may take.
	searchTime = 40 * time.Second
	// searchWaits are the seconds in which what is expected must happen.
	searchWaits = 10
	// unbroken is no mutant.
	unbroken = "none"
	// root of the module.
	root = "../.."
)

// breed builds a daemon that holds every mutant, switched off.
func breed(t *testing.T) (program string) {
	t.Helper()
	dir := t.TempDir()
	program = filepath.Join(dir, "redlockd")
	if err := mutants.Build(root, dir, program, "redlockd", "build"); err != nil {
		t.Fatal(err)
	}
	return program
}

// mutantRun is a mutant, or none, and the search for it.
type mutantRun struct {
	mutant  *mutants.Mutant
	search  string
	outcome mutantOutcome
}

func (p *mutantRun) name() string {
	if p.mutant == nil {
		return unbroken
	}
	return p.mutant.Name
}

// run runs the search in a process of its own.
func (p *mutantRun) run(daemon string, most time.Duration) error {
	name := ""
	if p.mutant != nil {
		name = p.mutant.Name
	}
	if beyond(name) != "" {
		return nil
	}
	i := slices.IndexFunc(searches(), func(h search) bool { return h.name == p.search })
	if i < 0 {
		return fmt.Errorf("%q is no search", p.search)
	}
	waits := searches()[i].waits
	cmd := exec.Command(os.Args[0], "-test.run", "^TestSearch$", "-test.timeout", "10m")
	cmd.Env = append(os.Environ(), searchName+"="+p.search, fmt.Sprintf("%s=%d", searchSeconds, int(most.Seconds())),
		searchTimeout+"="+strconv.Itoa(cmp.Or(waits, searchWaits)), "CHAOS_BINARY="+daemon, mutants.Variable+"="+name)
	output, err := cmd.CombinedOutput()
	for line := range strings.SplitSeq(string(output), "\n") {
		if text, ok := strings.CutPrefix(line, "outcome "); ok {
			return json.Unmarshal([]byte(text), &p.outcome)
		}
	}
	return fmt.Errorf("the search for %s did not come to an end: %w\n%s", p.name(), err, output)
}

// runAll runs two of them at a time, one for each core.
func runAll(t *testing.T, all []*mutantRun, most time.Duration) {
	t.Helper()
	daemon := breed(t)
	var group sync.WaitGroup
	next := make(chan *mutantRun) // each is taken by one of two
	for range 2 {
		group.Go(func() {
			for p := range next {
				p.report(t, p.run(daemon, most))
			}
		})
	}
	for _, p := range all {
		next <- p
	}
	close(next)
	group.Wait()
}

func (p *mutantRun) report(t *testing.T, err error) {
	t.Helper()
	why, _, _ := strings.Cut(p.outcome.Why, "\n")
	switch {
	case err != nil:
		t.Error(err)
	case !p.outcome.Caught:
		t.Logf("%-16s not caught after %3.0f s in %q", p.name(), p.outcome.Seconds, p.search)
	default:
		t.Logf("%-16s caught by %s after %.1f s in %q: %s", p.name(), p.outcome.By, p.outcome.Seconds, p.search, why)
	}
}

// quickly is the mutant for which every run of the tests searches.
const quickly = "quorum"

func TestMutationE2E_AMutantIsCaught(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds a mutant and searches for it")
	}
	p := &mutantRun{mutant: mutants.Find(quickly), search: where(quickly)}
	runAll(t, []*mutantRun{p}, searchTime)
	if !p.outcome.Caught {
		t.Errorf("with half of the masters for a quorum nothing was seen to be wrong in %v", searchTime)
	}
}

func TestMutationE2E_SearchesAreThereAndUsed(t *testing.T) {
	for _, h := range searches() {
		if !slices.ContainsFunc(mutants.Names(), func(name string) bool { return where(name) == h.name }) {
			t.Errorf("no mutant has the search %q", h.name)
		}
	}
	for _, name := range mutants.Names() {
		if !slices.ContainsFunc(searches(), func(h search) bool { return h.name == where(name) }) {
			t.Errorf("mutant %s has the search %q, which does not exist", name, where(name))
		}
	}
}

// TestMutationE2E_MutantsAreCaught searches for E2E_MUTANTS: names, or all. A name is that
// of a mutant, or of a mutant and a search: "quorum:links"; none is the daemon without a
// fault.
func TestMutationE2E_MutantsAreCaught(t *testing.T) {
	list := os.Getenv("E2E_MUTANTS")
	if list == "" {
		t.Skip("a run of its own: make mutation-e2e")
	}
	all := chosenMutants(t, list)
	runAll(t, all, chosenLife(t))
	table := mutantTable{}
	for _, p := range all {
		table.add(p)
		if p.mutant == nil && p.outcome.Caught {
			t.Errorf("a daemon without a fault was caught in %q: %s", p.search, p.outcome.Why)
		}
	}
	t.Logf("\n%s", table.text())
	if list == "all" && !t.Failed() {
		table.publish(t)
	}
}

// chosenLife is how long a mutant may live: E2E_SECONDS shortens it for some of them.
func chosenLife(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("E2E_SECONDS")
	if text == "" {
		return searchTime
	}
	seconds, err := strconv.Atoi(text)
	if err != nil || seconds < 1 || os.Getenv("E2E_MUTANTS") == "all" {
		t.Fatalf("E2E_SECONDS=%q: want the seconds that some mutants may live, 1 or more; what is published has %v", text, searchTime)
	}
	return time.Duration(seconds) * time.Second
}

func chosenMutants(t *testing.T, list string) (all []*mutantRun) {
	t.Helper()
	names := strings.Fields(list)
	if list == "all" {
		names = mutants.Names()
		for _, h := range searches() {
			names = append(names, unbroken+":"+strings.ReplaceAll(h.name, " ", "_"))
		}
	}
	for _, name := range names {
		name, search, _ := strings.Cut(name, ":")
		m := mutants.Find(name)
		if m == nil && name != unbroken {
			t.Fatalf("E2E_MUTANTS: %q is no mutant; allowed are all, %s, and %q", name, unbroken, mutants.Names())
		}
		if m != nil && m.Covered != "" {
			continue
		}
		if search == "" {
			search = where(name)
		}
		all = append(all, &mutantRun{mutant: m, search: strings.ReplaceAll(search, "_", " ")})
	}
	return all
}
