package sim

// breed_test.go: how mutants are built, played and written down. A simulation that
// finds nothing proves nothing unless it finds what is there: each mutant must be
// caught within two minutes.

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"redlockd/redlock/mutants"
)

// root of the module.
const root = "../.."

func source(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// breed builds one program that holds every mutant, switched off.
func breed(t *testing.T) (program string) {
	t.Helper()
	dir := t.TempDir()
	program = filepath.Join(dir, "mutants")
	if err := mutants.Build(root, dir, program, ".", "test", "-c"); err != nil {
		t.Fatal(err)
	}
	return program
}

// catch is what became of a mutant.
type catch struct {
	Name, What string
	Caught     bool
	Covered    string // why it may live
	By         string // the checker's rule
	Scenario   string
	Seed       uint64
	Worlds     int64
	Executions int64
	Seconds    float64
	Why        string
}

// mutantLife is how many executions a mutant may live: a minute or two of a core
// that has nothing else to do. mutantTime ends it on one that has.
const (
	mutantLife = 25_000_000
	mutantTime = 15 * time.Minute
)

// TestMutant plays one mutant, in a process that breed built.
func TestMutant(t *testing.T) {
	name := os.Getenv(mutants.Variable)
	if name == "" {
		t.Skip("this is where TestMutants plays a mutant")
	}
	m := mutants.Find(name)
	if m == nil {
		t.Fatalf("%s=%q: there is no such mutant", mutants.Variable, name)
	}
	plan := Plan{Scenarios: Scenarios(), Seed: 1, Threads: 1, Time: mutantTime, Executions: environment(t, "SIM_EXECUTIONS", mutantLife)}
	plan.Scenarios = slices.DeleteFunc(plan.Scenarios, func(s *Scenario) bool { return s.Open != "" })
	only := m.Scenario
	if name := os.Getenv("SIM_SCENARIO"); name != "" {
		only = name
	}
	if only != "" {
		plan.Scenarios = []*Scenario{Find(only)}
	}
	r := Run(plan)
	sum := r.Total()
	c := catch{Name: m.Name, What: m.What, Covered: m.Covered, Worlds: sum.Worlds, Executions: sum.Executions, Seconds: r.Elapsed.Seconds()}
	for _, v := range r.Violated() {
		c.Caught, c.By, c.Scenario, c.Seed, c.Why = true, v.Rule, v.Scenario, v.Seed, v.Error()
	}
	line, _ := json.Marshal(c)
	fmt.Printf("\ncatch %s\n", line)
}

// play runs one mutant in a process of its own.
func play(t *testing.T, program, name string) catch {
	ctx, cancel := context.WithTimeout(t.Context(), mutantTime+time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "-test.run", "^TestMutant$", "-test.timeout", "20m")
	cmd.Env = append(os.Environ(), mutants.Variable+"="+name)
	output, err := cmd.CombinedOutput()
	for line := range strings.SplitSeq(string(output), "\n") {
		if text, ok := strings.CutPrefix(line, "catch "); ok {
			var c catch
			if err = json.Unmarshal([]byte(text), &c); err == nil {
				return c
			}
		}
	}
	t.Errorf("mutant %s did not come to an end: %v\n%s", name, err, output)
	return catch{Name: name}
}

// smoke are the mutants that every run of the tests plays: quick to catch, and
// each by another part of the checker.
var smoke = []string{"quorum", "seal", "owner", "low-end", "unfenced-end"}

// TestMutants_AreCaught plays SIM_MUTANTS: a few by default, "all", or names.
func TestMutants_AreCaught(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds and plays mutants")
	}
	wanted := smoke
	switch list := os.Getenv("SIM_MUTANTS"); list {
	case "":
	case "all":
		wanted = mutants.Names()
	default:
		wanted = strings.Fields(list)
	}
	program := breed(t)
	catches := make([]catch, len(wanted))
	var group sync.WaitGroup
	places := make(chan struct{}, 2) // one for each core
	for i, name := range wanted {
		group.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			c := play(t, program, name)
			if catches[i] = c; !c.Caught && c.Covered != "" {
				t.Logf("%-14s lives after %d worlds and %d executions, as %s", name, c.Worlds, c.Executions, c.Covered)
				return
			} else if !c.Caught {
				t.Errorf("mutant %s lives after %d worlds and %d executions: %s", name, c.Worlds, c.Executions, c.What)
				return
			}
			t.Logf("%-14s caught by %s in %s, seed %d, after %d worlds, %d executions, %.1f s", name, c.By, c.Scenario, c.Seed, c.Worlds, c.Executions, c.Seconds)
			if os.Getenv("SIM_WHY") != "" {
				t.Log(c.Why)
			}
		})
	}
	group.Wait()
	if os.Getenv("SIM_MUTANTS") == "all" {
		writeMutants(t, catches)
	}
}

func writeMutants(t *testing.T, catches []catch) {
	var out strings.Builder
	caught, covered := 0, 0
	fmt.Fprintln(&out, "| not caught | what is wrong with it | why it may live | million executions |")
	fmt.Fprintln(&out, "|---|---|---|---:|")
	for _, c := range catches {
		switch {
		case c.Caught:
			caught++
			continue
		case c.Covered != "":
			covered++
		}
		fmt.Fprintf(&out, "| %s | %s | %s | %.0f |\n", c.Name, c.What, cmp.Or(c.Covered, "**nothing**"), float64(c.Executions)/1e6)
	}
	intro := fmt.Sprintf("`make mutants`, %s, one thread and at most %d million executions a mutant: **%d of %d caught**, %d more are covered by another rule, %d not caught.\n\n",
		time.Now().UTC().Format(time.DateOnly), mutantLife/1_000_000, caught, len(catches), covered, len(catches)-caught-covered)
	writeResults(t, mutantsPage, "mutants", intro+out.String())
}

const (
	simPage     = "RESULTS.md"
	mutantsPage = "../mutants/RESULTS.md"
)

// writeResults replaces a generated part of a page.
func writeResults(t *testing.T, page, part, text string) {
	t.Helper()
	if err := mutants.WriteResults(page, part, text); err != nil {
		t.Fatal(err)
	}
}

// publish writes what was played into RESULTS.md.
func publish(t *testing.T, p Plan, r *RunReport) {
	t.Helper()
	sum := r.Total()
	var out strings.Builder
	fmt.Fprintf(&out, "`make sim`, %s: seeds %d to %d, %d threads, %v. **%.1f million executions** (commands of operations, and seals that raise; %.1f million commands in all), **%d violations** of what is required.\n\n",
		time.Now().UTC().Format(time.DateOnly), r.Seeds[0], r.Seeds[1], p.Threads, r.Elapsed.Round(time.Second),
		float64(sum.Executions)/1e6, float64(sum.Commands)/1e6, len(r.Violated()))
	out.WriteString("| scenarios | worlds | events | answers checked | locks and attempts granted |\n|---:|---:|---:|---:|---:|\n")
	fmt.Fprintf(&out, "| %d | %d | %d | %d | %d |\n", len(r.Results), sum.Worlds, sum.Steps, sum.Checked, sum.Grants)
	listed := map[string]bool{}
	for _, s := range Scenarios() {
		if s.Open != "" && !listed[s.Open] {
			listed[s.Open] = true
			fmt.Fprintf(&out, "\n%s: measured, not required: %s.\n", s.Name, s.Open)
		}
	}
	writeResults(t, simPage, "sim", out.String())
}
