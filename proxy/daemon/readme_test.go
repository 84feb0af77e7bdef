package daemon

import (
	"os"
	"testing"
)

// maxReadme keeps the README a page that a stranger reads to its end.
const maxReadme = 10 << 10

func TestReadme_IsShort(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	if len(text) > maxReadme {
		t.Errorf("README.md has %d bytes, allowed are %d: move details to the page of a package", len(text), maxReadme)
	}
}
