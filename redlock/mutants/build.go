package mutants

// build.go: the build of a program that holds every mutant of Go text, switched off,
// and one mutant of scripts, switched on.

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Build makes a program of a package, with these words of the go command (build, or
// test -c), the tag "controls" and the product's text as the mutants have it: all
// changes of Go files, each behind pool.Broken, and those of the scripts of one
// mutant, nil for none. root is the module's; dir is for what is written.
func Build(root, dir, program, pkg string, scripts *Mutant, words ...string) error {
	overlay := filepath.Join(dir, "overlay.json")
	if err := writeOverlay(root, dir, overlay, scripts); err != nil {
		return err
	}
	words = append(words, "-tags", "controls", "-overlay", overlay, "-o", program, pkg)
	if output, err := exec.Command("go", words...).CombinedOutput(); err != nil {
		return fmt.Errorf("building the mutants: %w\n%s", err, output)
	}
	return nil
}

func writeOverlay(root, dir, overlay string, scripts *Mutant) error {
	texts := map[string]string{}
	for _, m := range All() {
		for _, c := range m.Changes {
			if c.script() && (scripts == nil || scripts.Name != m.Name) {
				continue
			}
			if texts[c.File] == "" {
				text, err := os.ReadFile(filepath.Join(root, c.File))
				if err != nil {
					return err
				}
				texts[c.File] = string(text)
			}
			texts[c.File] = strings.Replace(texts[c.File], c.Old, c.New, 1)
		}
	}
	replace := map[string]string{}
	for file, text := range texts {
		original, err := filepath.Abs(filepath.Join(root, file))
		if err != nil {
			return err
		}
		replace[original] = filepath.Join(dir, strings.ReplaceAll(file, "/", "-"))
		if err := os.WriteFile(replace[original], []byte(text), 0o600); err != nil {
			return err
		}
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	return os.WriteFile(overlay, list, 0o600)
}
