package mutants

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every page has the marks between which `make sim`, `make mutants`, `make
// mutation-e2e`, `make sim-vs-redis` and `make chaos` write: they need not run for half
// an hour to find out that it has not.
func TestWriteResults_ReplacesItsPartOfEveryPageAlone(t *testing.T) {
	for _, one := range []struct{ page, part string }{
		{"../sim/RESULTS.md", "sim"},
		{"../sim/RESULTS.md", "sim-vs-redis"},
		{"RESULTS.md", "mutants"},
		{"RESULTS.md", "mutation-e2e"},
		{"../chaos/RESULTS.md", "chaos"},
	} {
		text, err := os.ReadFile(one.page)
		if err != nil {
			t.Fatal(err)
		}
		page := filepath.Join(t.TempDir(), "RESULTS.md")
		if err := os.WriteFile(page, text, 0o600); err != nil {
			t.Fatal(err)
		}
		const row = "| a new row |\n"
		if err := WriteResults(page, one.part, row); err != nil {
			t.Errorf("%s: %v", one.page, err)
			continue
		}
		got, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		begin, end := "<!-- "+one.part+" begin: generated, do not edit -->\n", "<!-- "+one.part+" end -->"
		head, rest, _ := strings.Cut(string(text), begin)
		_, tail, _ := strings.Cut(rest, end)
		if want := head + begin + row + end + tail; string(got) != want {
			t.Errorf("%s, part %s: the rest of the page changed", one.page, one.part)
		}
	}
}
