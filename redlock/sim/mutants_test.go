package sim

// mutants_test.go: a simulation that finds nothing proves nothing unless it
// finds what is there. Each mutant is the product with one fault; it must be
// caught within two minutes.

import (
	"strings"
	"testing"
)

// mutant is one fault. Some are rules of pool/rules.go; the others are patches
// of the product's text: of a Go file, built in behind pool.Broken(name), or of
// a script, when the masters load it.
type mutant struct {
	name    string
	what    string
	change  []change // none for a rule of pool/rules.go
	where   string   // the scenario that was written for it, if it is rare elsewhere; "" = all are played
	covered string   // why it does no harm that a client could see: another rule is enough; "" = it must be caught
}

// change replaces text that stands in a file exactly once.
type change struct {
	file     string // below the module's root; a script's is changed on the masters
	old, new string
}

func (c change) script() bool { return strings.HasSuffix(c.file, ".lua") }

// patch changes scripts as a mutant has it.
func (m *mutant) patch(text string) string {
	for _, c := range m.change {
		if c.script() {
			text = strings.Replace(text, c.old, c.new, 1)
		}
	}
	return text
}

func rule(name, what string) mutant { return mutant{name: name, what: what} }

func (m mutant) but(covered string) mutant { m.covered = covered; return m }

func (m mutant) in(scenario string) mutant { m.where = scenario; return m }

func patched(name, what string, changes ...change) mutant {
	return mutant{name: name, what: what, change: changes}
}

func TestMutants_EveryPatchApplies(t *testing.T) {
	for _, m := range mutants() {
		for _, c := range m.change {
			if n := strings.Count(source(t, c.file), c.old); n != 1 {
				t.Errorf("mutant %s: its text stands in %s %d times, want once: adapt it to the code:\n%s", m.name, c.file, n, c.old)
			}
		}
	}
}
