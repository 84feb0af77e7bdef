package commands_test

import (
	"os"
	"strings"
	"testing"

	"redlockd/commands"
)

// The table is generated from the rows; with REDLOCKD_UPDATE=1 this test writes it.
func TestReference_ShowsTheRows(t *testing.T) {
	const page, begin, end = "REFERENCE.md", "<!-- commands -->\n", "<!-- /commands -->"
	want := markdown(newTable(commands.Deps{}).Rows())
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
		t.Fatalf("%s does not show the commands; REDLOCKD_UPDATE=1 go test -run Reference ./commands writes them\nwant:\n%s\nshown:\n%s", page, want, shown)
	}
	if err := os.WriteFile(page, []byte(before+begin+want+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// markdown is the table of commands: how each is written, what it does and which category
// a user needs for it.
func markdown(rows []*commands.Command) string {
	var page strings.Builder
	page.WriteString("| command | what it does | category |\n|---|---|---|\n")
	for _, row := range rows {
		if len(row.Parts) == 0 || row.Handle != nil {
			page.WriteString(markdownLine(row))
		}
		for _, part := range row.Parts {
			page.WriteString(markdownLine(part))
		}
	}
	return page.String()
}

// markdownLine is one line of the table; a bar would end its cell.
func markdownLine(c *commands.Command) string {
	bars := strings.NewReplacer("|", `\|`)
	category := c.Category
	if c.Also != "" {
		category += ", " + c.Also
	}
	return "| `" + bars.Replace(c.Syntax) + "` | " + bars.Replace(c.Summary) + " | " + category + " |\n"
}
