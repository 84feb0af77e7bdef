package daemon

import (
	"os"
	"strings"
	"testing"

	"redlockd/commands"
)

// maxReadme keeps the README a page that a stranger reads to its end.
const maxReadme = 12 << 10

func TestReadme_IsShort(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	if len(text) > maxReadme {
		t.Errorf("README.md has %d bytes, allowed are %d: move details to the page of a package", len(text), maxReadme)
	}
}

// The table is generated from the rows; with REDLOCKD_UPDATE=1 this test writes it.
func TestReadme_ShowsTheCommandTable(t *testing.T) {
	shows(t, "commands/README.md", "commands", newTable(commands.Deps{}).Markdown())
}

// shows compares the text between two marks of a page.
func shows(t *testing.T, page, name, want string) {
	t.Helper()
	begin, end := "<!-- "+name+" -->\n", "<!-- /"+name+" -->"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok1 := strings.Cut(string(text), begin)
	shown, after, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("%s has no place between %q and %q", page, begin, end)
	}
	if shown == want {
		return
	}
	if os.Getenv("REDLOCKD_UPDATE") == "" {
		t.Fatalf("%s does not show the %s; REDLOCKD_UPDATE=1 go test -run Readme ./proxy/daemon writes them\nwant:\n%s\nshown:\n%s", page, name, want, shown)
	}
	if err := os.WriteFile(page, []byte(before+begin+want+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}
