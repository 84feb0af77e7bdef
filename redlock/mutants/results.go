package mutants

import (
	"fmt"
	"os"
	"strings"
)

// WriteResults replaces a generated part of a page, such as RESULTS.md.
func WriteResults(file, part, text string) error {
	page, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	begin, end := "<!-- "+part+" begin: generated, do not edit -->\n", "<!-- "+part+" end -->"
	head, rest, opened := strings.Cut(string(page), begin)
	_, tail, closed := strings.Cut(rest, end)
	if !opened || !closed {
		return fmt.Errorf("%s has no place for %s, between %q and %q", file, part, begin, end)
	}
	return os.WriteFile(file, []byte(head+begin+text+end+tail), 0o644)
}
