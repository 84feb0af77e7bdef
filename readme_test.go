package main

import (
	"os"
	"strings"
	"testing"

	"redlockd/commands"
)

// The README's table of commands is made of the command table; with
// REDLOCKD_UPDATE=1 this test writes it.
func TestReadme_ShowsTheCommandTable(t *testing.T) {
	const begin, end = "<!-- commands -->\n", "<!-- /commands -->"
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok1 := strings.Cut(string(text), begin)
	shown, after, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("README.md has no place between %q and %q", begin, end)
	}
	want := commands.NewTable(commands.Env{}).Markdown()
	if shown == want {
		return
	}
	if os.Getenv("REDLOCKD_UPDATE") == "" {
		t.Fatalf("README.md does not show the command table; REDLOCKD_UPDATE=1 go test -run Readme . writes it\nwant:\n%s\nshown:\n%s", want, shown)
	}
	if err := os.WriteFile("README.md", []byte(before+begin+want+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}
