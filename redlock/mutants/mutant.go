package mutants

// mutant.go: the form of a mutant, and of the changes that it makes to the product's text.

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Mutant is one fault: patches of the product's text. Those of a Go file are built in behind
// pool.Broken(Name), those of a script of the masters apply when a program reads the script.
type Mutant struct {
	Name     string
	What     string // what is wrong with the product
	Changes  []Change
	Scenario string // of the simulation, that was written for it, if it is rare elsewhere; "" = all are played
	Covered  string // why it does no harm that a client could see: another rule is enough; "" = it must be caught
}

// Change replaces text that occurs in a file exactly once. All changes of Go files are in one
// program: New keeps Old, once, where other mutants change the same text.
type Change struct {
	File     string // below the module's root
	Old, New string
}

func (c Change) script() bool { return strings.HasSuffix(c.File, ".lua") }

// Find returns the mutant of a name; nil if there is none.
func Find(name string) *Mutant {
	all := All()
	i := slices.IndexFunc(all, func(m Mutant) bool { return m.Name == name })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// Names returns the names of all mutants.
func Names() []string {
	var names []string
	for _, m := range All() {
		names = append(names, m.Name)
	}
	return names
}

// Misfits returns the changes that do not fit the product's text as it is now, below root.
func Misfits(root string) error {
	var misfits []error
	for _, m := range All() {
		for _, c := range m.Changes {
			text, err := os.ReadFile(filepath.Join(root, c.File))
			if err != nil {
				return fmt.Errorf("mutant %s: %w", m.Name, err)
			}
			if err := c.fits(m.Name, string(text)); err != nil {
				misfits = append(misfits, err)
			}
		}
	}
	if misfits != nil {
		return errors.Join(misfits...)
	}
	_, err := compose(root)
	return err
}

func (c Change) fits(mutant, text string) error {
	if n := strings.Count(text, c.Old); n != 1 {
		return fmt.Errorf("mutant %s: its text occurs in %s %d times, want once: adapt it to the code:\n%s", mutant, c.File, n, c.Old)
	}
	return nil
}

func (m Mutant) but(covered string) Mutant { m.Covered = covered; return m }

func (m Mutant) in(scenario string) Mutant { m.Scenario = scenario; return m }

func patched(name, what string, changes ...Change) Mutant {
	return Mutant{Name: name, What: what, Changes: changes}
}
