// The table of results: one row for each library and protocol.

package main

import (
	"fmt"
	"slices"
	"strings"
)

// table is a Markdown file; the same outcomes give the same bytes.
func table(outcomes []outcome, stand string) string {
	var b strings.Builder
	b.WriteString("# Client libraries against redlockd\n\n")
	fmt.Fprintf(&b, "`make interop` wrote this page in its last run (%s). [README.md](README.md) describes the scenario and its steps.\n", stand)
	b.WriteString("Lock libraries run unmodified and use a daemon on five masters as one Redis. Examples are the programs of [commands/examples](../../commands/examples).\n\n")
	b.WriteString("| library | version | as | protocol | steps passed | |\n|---|---|---|---|---|---|\n")
	for _, o := range outcomes {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n",
			o.run.library, o.version, o.run.as, spoken(&o), stepsOf(o), remarks(o))
	}
	return b.String()
}

// stepsOf names the steps only where not all were passed.
func stepsOf(o outcome) string {
	missing := slices.DeleteFunc(slices.Clone(o.run.steps()), func(s string) bool { return slices.Contains(o.passed, s) })
	all := len(o.passed) + len(missing)
	text := fmt.Sprintf("%d of %d", len(o.passed), all)
	if o.run.recorded != "" {
		text = strings.Join(o.passed, ", ")
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
	switch {
	case o.run.recorded != "" && o.run.locks:
		parts = append(parts, "recorded: its commands sent again, with scripts of like behaviour for its own; the library is not installed for this run")
	case o.run.recorded != "":
		parts = append(parts, "recorded bytes sent again; the library is not installed for this run")
	case o.run.refusal != "":
		parts = append(parts, fmt.Sprintf("refused by name: `%s…`", o.run.refusal))
	}
	if o.run.lacks != "" {
		parts = append(parts, "it has no "+o.run.lacks)
	}
	if o.run.remark != "" {
		parts = append(parts, o.run.remark)
	}
	return strings.Join(parts, "; ")
}
