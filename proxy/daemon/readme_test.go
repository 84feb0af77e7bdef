package daemon

import (
	"os"
	"strings"
	"testing"

	"redlockd/commands"
)

// The README's tables are made of what they show; with REDLOCKD_UPDATE=1 these
// tests write them.
func TestReadme_ShowsTheCommandTable(t *testing.T) {
	shows(t, "commands", commands.NewTable(commands.Env{}).Markdown())
}

func TestReadme_ShowsTheClientLibrariesOfTheLastRun(t *testing.T) {
	results, err := os.ReadFile("proxy/interop/RESULTS.md")
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	for line := range strings.Lines(string(results)) {
		if strings.HasPrefix(line, "|") {
			table.WriteString(line)
		}
	}
	shows(t, "clients", table.String())
}

// shows compares what stands between two marks of the README.
func shows(t *testing.T, name, want string) {
	t.Helper()
	begin, end := "<!-- "+name+" -->\n", "<!-- /"+name+" -->"
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok1 := strings.Cut(string(text), begin)
	shown, after, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("README.md has no place between %q and %q", begin, end)
	}
	if shown == want {
		return
	}
	if os.Getenv("REDLOCKD_UPDATE") == "" {
		t.Fatalf("README.md does not show the %s; REDLOCKD_UPDATE=1 go test -run Readme ./proxy/daemon writes them\nwant:\n%s\nshown:\n%s", name, want, shown)
	}
	if err := os.WriteFile("README.md", []byte(before+begin+want+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}
