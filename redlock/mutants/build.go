package mutants

// build.go: the build of a program that holds every mutant, switched off. Its variable of
// the environment switches on one.

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Build makes a program of a package, with these words of the go command (build, or
// test -c) and the product's text as the mutants have it. root is the module's; dir is for
// what is written.
func Build(root, dir, program, pkg string, words ...string) error {
	overlay, err := Overlay(root, dir)
	if err != nil {
		return err
	}
	words = append(words, "-overlay", overlay, "-o", program, pkg)
	if output, err := exec.Command("go", words...).CombinedOutput(); err != nil {
		return fmt.Errorf("building the mutants: %w\n%s", err, output)
	}
	return nil
}

// Overlay writes the product's text as the mutants have it, and the file for the option
// -overlay of the go command.
func Overlay(root, dir string) (file string, err error) {
	texts, err := compose(root)
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	for file, text := range texts {
		original, err := filepath.Abs(filepath.Join(root, file))
		if err != nil {
			return "", err
		}
		replace[original] = filepath.Join(dir, strings.ReplaceAll(file, "/", "-"))
		if err := os.WriteFile(replace[original], []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	file = filepath.Join(dir, "overlay.json")
	return file, os.WriteFile(file, list, 0o600)
}

// switchFile is added to the product by the overlay: the switch of the changes of Go files.
const switchFile = "pool/broken.go"

const switchText = `package pool

import "redlockd/redlock/mutants"

// Broken reports whether this process is the mutant of this name.
func Broken(name string) bool { return mutants.Name() == name }
`

// scriptSwitches are the changes that switch the changes of scripts: a program reads its
// scripts as the mutant has them.
func scriptSwitches() []Change {
	return []Change{
		{"redlock/scripts/scripts.go", "var files embed.FS\n", "var embedded embed.FS\n\nvar files = mutants.Scripts{FS: embedded, Dir: \"redlock/scripts\"}\n"},
		{"pool/admission/admit.go", "var admitScript string\n", "var admitScript string\n\nfunc init() { admitScript = mutants.Script(\"pool/admission/admit.lua\", admitScript) }\n"},
		{"pool/setup/rename.go", "var renameScript string\n", "var renameScript string\n\nfunc init() { renameScript = mutants.Script(\"pool/setup/rename.lua\", renameScript) }\n"},
		{"pool/setup/carry.go", "var carryScript string\n", "var carryScript string\n\nfunc init() { carryScript = mutants.Script(\"pool/setup/carry.lua\", carryScript) }\n"},
	}
}

// compose returns the Go files that differ from the product's, by name below root. Each
// change must find its text once, also behind the changes before it.
func compose(root string) (map[string]string, error) {
	texts := map[string]string{}
	for _, m := range append(All(), Mutant{Name: "of any script", Changes: scriptSwitches()}) {
		for _, c := range m.Changes {
			if c.script() {
				continue
			}
			if texts[c.File] == "" {
				text, err := os.ReadFile(filepath.Join(root, c.File))
				if err != nil {
					return nil, fmt.Errorf("mutant %s: %w", m.Name, err)
				}
				texts[c.File] = string(text)
			}
			if err := c.fits(m.Name, texts[c.File]); err != nil {
				return nil, err
			}
			texts[c.File] = strings.Replace(texts[c.File], c.Old, c.New, 1)
		}
	}
	for _, file := range slices.Collect(maps.Keys(texts)) {
		texts[file] = imported(texts[file])
	}
	texts[switchFile] = switchText
	return texts, nil
}

var packageClause = regexp.MustCompile(`(?m)^package \w+\n`)

// imported is a text that imports the packages which its changes need.
func imported(text string) string {
	for _, needed := range []struct{ path, use string }{
		{`"redlockd/pool"`, "pool.Broken("},
		{`"redlockd/redlock/mutants"`, "mutants.Script"},
		{`"redlockd/redlock/mutants"`, "mutants.Name"},
	} {
		if strings.Contains(text, needed.use) && !strings.Contains(text, needed.path+"\n") {
			text = packageClause.ReplaceAllString(text, "${0}\nimport "+needed.path+"\n")
		}
	}
	return text
}
