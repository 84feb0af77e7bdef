package contract

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// maxShown bounds the lines of a difference.
const maxShown = 20

// golden is the path of a golden file.
func golden(name string) string { return filepath.Join("testdata", name+".golden") }

// compare fails if got is not what the golden file holds; with REDLOCKD_UPDATE set
// it writes the file.
func compare(t *testing.T, name, got string) {
	t.Helper()
	if os.Getenv("REDLOCKD_UPDATE") != "" {
		if err := os.WriteFile(golden(name), []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(golden(name))
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs: a contract with users changes. If that is intended, run `make golden` and name the change in CHANGELOG.md.\n%s",
			golden(name), diff(string(want), got))
	}
}

// diff shows lines that were removed (-) and added (+), with their numbers.
func diff(want, got string) string {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	var out []string
	for i, j := 0, 0; i < len(a) || j < len(b); {
		if i < len(a) && j < len(b) && a[i] == b[j] {
			i, j = i+1, j+1
			continue
		}
		di, dj := resume(a[i:], b[j:])
		for ; di > 0; di-- {
			out = append(out, fmt.Sprintf("%4d - %s", i+1, a[i]))
			i++
		}
		for ; dj > 0; dj-- {
			out = append(out, fmt.Sprintf("%4d + %s", j+1, b[j]))
			j++
		}
	}
	if more := len(out) - maxShown; more > 0 {
		out = append(out[:maxShown], fmt.Sprintf("… and %d lines more", more))
	}
	return strings.Join(out, "\n")
}

// resume is how many lines to skip on both sides until they agree again.
func resume(a, b []string) (int, int) {
	for skip := 1; skip < len(a)+len(b); skip++ {
		for i := max(0, skip-len(b)); i <= min(skip, len(a)); i++ {
			j := skip - i
			if i < len(a) && j < len(b) && a[i] == b[j] {
				return i, j
			}
		}
	}
	return len(a), len(b)
}

func TestDiff_ShowsChangedLinesOnly(t *testing.T) {
	got := diff("a\nb\nc\nd", "a\nB\nc\nd\ne")
	if want := "   2 - b\n   2 + B\n   5 + e"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	long := diff("", strings.Join(slices.Repeat([]string{"x"}, 100), "\n"))
	if lines := strings.Count(long, "\n") + 1; lines != maxShown+1 {
		t.Errorf("%d lines, want %d:\n%s", lines, maxShown+1, long)
	}
}
