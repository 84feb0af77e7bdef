package daemon

import (
	"os"
	"testing"
)

// maxBytes keeps these pages as long as a stranger reads to their end.
var maxBytes = map[string]int{"README.md": 10 << 10, "bench/COMPARED.md": 9 << 10, "commands/COOKBOOK.md": 9 << 10}

func TestReadme_IsShort(t *testing.T) {
	for page, limit := range maxBytes {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if len(text) > limit {
			t.Errorf("%s has %d bytes, allowed are %d: move details to the page of a package", page, len(text), limit)
		}
	}
}
