package chaos

// mutants_test.go: the rig finds what is there. The product with one fault, as the
// simulation plays it, is run as processes; the table of what is caught goes into
// redlock/mutants/RESULTS.md.

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
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
	// huntTime is how long a mutant may live.
	searchTime = 40 * time.Second
	// huntWaits are the seconds in which what is expected must happen.
	searchWaits = 10
	// unbroken is no mutant.
	unbroken = "none"
	// root of the module.
	root = "../.."
)

// breeder builds daemons: one for all mutants but those of scripts, and one for each
// of these.
type breeder struct {
	dir  string
	mu   sync.Mutex
	made map[string]string // by the mutant of scripts, "" for none
}

// daemon with the mutant in it; "" is the daemon with all of them asleep.
func (b *breeder) daemon(name string) (string, error) {
	m := mutants.Find(name)
	if m == nil || !m.OfScripts() {
		m, name = nil, ""
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if there := b.made[name]; there != "" {
		return there, nil
	}
	dir := filepath.Join(b.dir, "text-"+name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	program := filepath.Join(b.dir, "redlockd-"+name)
	if err := mutants.Build(root, dir, program, "redlockd", m, "build"); err != nil {
		return "", err
	}
	b.made[name] = program
	return program, nil
}

// prey is a mutant, or none, and where it is hunted.
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

// chase runs the hunt in a process of its own.
func (p *mutantRun) run(b *breeder, most time.Duration) error {
	name := ""
	if p.mutant != nil {
		name = p.mutant.Name
	}
	if beyond(name) != "" {
		return nil
	}
	binary, err := b.daemon(name)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(searches(), func(h search) bool { return h.name == p.search })
	if i < 0 {
		return fmt.Errorf("%q is no hunt", p.search)
	}
	waits := searches()[i].waits
	cmd := exec.Command(os.Args[0], "-test.run", "^TestHunt$", "-test.timeout", "10m")
	cmd.Env = append(os.Environ(), searchName+"="+p.search, fmt.Sprintf("%s=%d", searchSeconds, int(most.Seconds())),
		searchTimeout+"="+strconv.Itoa(cmp.Or(waits, searchWaits)), "CHAOS_BINARY="+binary, mutants.Variable+"="+name)
	output, err := cmd.CombinedOutput()
	for line := range strings.SplitSeq(string(output), "\n") {
		if text, ok := strings.CutPrefix(line, "bag "); ok {
			return json.Unmarshal([]byte(text), &p.outcome)
		}
	}
	return fmt.Errorf("the hunt of %s did not come to an end: %w\n%s", p.name(), err, output)
}

// chaseAll has two of them run at a time, one for each core.
func runAll(t *testing.T, all []*mutantRun, most time.Duration) {
	t.Helper()
	b := &breeder{dir: t.TempDir(), made: map[string]string{}}
	var group sync.WaitGroup
	next := make(chan *mutantRun) // each is taken by one of two
	for range 2 {
		group.Go(func() {
			for p := range next {
				p.report(t, p.run(b, most))
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
		t.Logf("%-16s lives after %3.0f s in %q", p.name(), p.outcome.Seconds, p.search)
	default:
		t.Logf("%-16s caught by %s after %.1f s in %q: %s", p.name(), p.outcome.By, p.outcome.Seconds, p.search, why)
	}
}

// quickly is what every run of the tests hunts.
const quickly = "quorum"

func TestRigMutants_AMutantIsCaught(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds and hunts a mutant")
	}
	p := &mutantRun{mutant: mutants.Find(quickly), search: where(quickly)}
	runAll(t, []*mutantRun{p}, searchTime)
	if !p.outcome.Caught {
		t.Errorf("with half of the masters for a quorum nothing was seen to be wrong in %v", searchTime)
	}
}

func TestRigMutants_HuntsAreThereAndUsed(t *testing.T) {
	for _, h := range searches() {
		if !slices.ContainsFunc(mutants.Names(), func(name string) bool { return where(name) == h.name }) {
			t.Errorf("nothing is hunted in %q", h.name)
		}
	}
	for _, name := range mutants.Names() {
		if !slices.ContainsFunc(searches(), func(h search) bool { return h.name == where(name) }) {
			t.Errorf("mutant %s is hunted in %q, which is no hunt", name, where(name))
		}
	}
}

// TestRigMutants_AreCaught hunts RIG_MUTANTS: names, or all. A name is that of a
// mutant, or of a mutant and a hunt: "quorum:deaths"; none is the daemon without a
// fault.
func TestRigMutants_AreCaught(t *testing.T) {
	list := os.Getenv("RIG_MUTANTS")
	if list == "" {
		t.Skip("a run of its own: make rig-mutants")
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
	switch {
	case t.Failed():
	case list == "all":
		table.publish(t)
	case os.Getenv("RIG_PUBLISH") != "":
		older := readMutantTable(t)
		maps.Copy(older, table)
		older.publish(t)
	}
}

// chosenLife is how long a mutant may live: RIG_SECONDS says less for some of them.
func chosenLife(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("RIG_SECONDS")
	if text == "" {
		return searchTime
	}
	seconds, err := strconv.Atoi(text)
	if err != nil || seconds < 1 || os.Getenv("RIG_PUBLISH") != "" || os.Getenv("RIG_MUTANTS") == "all" {
		t.Fatalf("RIG_SECONDS=%q: want the seconds that some mutants may live, 1 or more; what is published has %v", text, searchTime)
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
		name, hunt, _ := strings.Cut(name, ":")
		m := mutants.Find(name)
		if m == nil && name != unbroken {
			t.Fatalf("RIG_MUTANTS: %q is no mutant; allowed are all, %s, and %q", name, unbroken, mutants.Names())
		}
		if m != nil && m.Covered != "" {
			continue
		}
		if hunt == "" {
			hunt = where(name)
		}
		all = append(all, &mutantRun{mutant: m, search: strings.ReplaceAll(hunt, "_", " ")})
	}
	return all
}
