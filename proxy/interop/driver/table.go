// The table of results: one row for what has passed the same steps in all its modes.

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// putTable writes the table of the stories, and leaves the chapters behind it.
func putTable(file, text string) error {
	former, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if at := strings.Index(string(former), "\n## "); at >= 0 {
		text += string(former)[at:]
	}
	return os.WriteFile(file, []byte(text), 0o644)
}

// putChapter writes one chapter behind the table, in place of the former one.
func putChapter(file, title, text string) error {
	page, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, chapter, found := strings.Cut(string(page), "\n## "+title+"\n")
	after := ""
	if at := strings.Index(chapter, "\n## "); found && at >= 0 {
		after = chapter[at:]
	}
	return os.WriteFile(file, []byte(before+"\n## "+title+"\n\n"+text+after), 0o644)
}

// table is a Markdown text; the same outcomes give the same bytes.
func table(outcomes []outcome, stand string) string {
	var b strings.Builder
	b.WriteString("# Client libraries against redlockd\n\n")
	fmt.Fprintf(&b, "`make interop` wrote this page in its last run (%s). [README.md](README.md) describes the scenario and its steps.\n", stand)
	b.WriteString("Lock libraries run unmodified and use a daemon on five masters as one Redis. Examples are the programs of [commands/examples](../../commands/examples),\n" +
		"packages those of [commands/clients](../../commands/clients/README.md). Recorded: what the library sent is sent again, of a lock library with scripts of like behaviour for\n" +
		"its own; it is not installed for this run.\n\n")
	b.WriteString("| library | version | as | steps passed | |\n|---|---|---|---|---|\n")
	for _, r := range rowsOf(outcomes) {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", strings.Join(r.libraries, ", "), r.version, strings.Join(r.modes, ", "), r.steps, r.remarks)
	}
	return b.String()
}

// row is one line of the table.
type row struct {
	libraries, modes        []string
	version, steps, remarks string
}

// rowsOf are the rows in the order of their first outcomes. A library's modes share one if they passed
// the same steps, and so do the libraries of examples of one kind.
func rowsOf(outcomes []outcome) (rows []*row) {
	for _, o := range outcomes {
		mode := strings.TrimSpace(o.run.as + " " + spoken(&o))
		add := row{[]string{o.run.library}, []string{mode}, o.version, stepsOf(o), remarks(o)}
		i := slices.IndexFunc(rows, func(r *row) bool {
			alike := r.version == add.version && r.steps == add.steps && r.remarks == add.remarks
			return alike && (o.run.example && slices.Equal(r.modes, add.modes) || !o.run.example && r.libraries[0] == o.run.library)
		})
		switch {
		case i < 0:
			rows = append(rows, &add)
		case o.run.example:
			rows[i].libraries = append(rows[i].libraries, o.run.library)
		default:
			rows[i].modes = append(rows[i].modes, mode)
		}
	}
	return rows
}

// stepsOf names the steps only where not all were passed.
func stepsOf(o outcome) string {
	missing := slices.DeleteFunc(slices.Clone(o.run.steps()), func(s string) bool { return slices.Contains(o.passed, s) })
	all := len(o.passed) + len(missing)
	text := fmt.Sprintf("%d of %d", len(o.passed), all)
	if o.run.recorded != "" {
		text = fmt.Sprintf("%d, recorded", len(o.passed))
	} else if len(missing) > 0 {
		text += ", not: " + strings.Join(missing, ", ")
	}
	return text
}

func remarks(o outcome) string {
	var parts []string
	if o.problem != "" {
		first, _, _ := strings.Cut(o.problem, "\n")
		parts = append(parts, fmt.Sprintf("**failed**: %.200s", strings.ReplaceAll(first, "|", "\\|")))
	}
	if o.run.refusal != "" {
		parts = append(parts, fmt.Sprintf("refused by name: `%s…`", o.run.refusal))
	}
	if o.run.lacks != "" {
		parts = append(parts, "it has no "+o.run.lacks)
	}
	if o.run.remark != "" && !o.run.example { // of an example it is the file
		parts = append(parts, o.run.remark)
	}
	return strings.Join(parts, "; ")
}
