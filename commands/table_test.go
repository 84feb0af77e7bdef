package commands

import (
	"slices"
	"strings"
	"testing"
)

// every calls f for each row and subcommand.
func every(t *Table, f func(*command)) {
	for _, row := range t.rows {
		f(row)
		for _, part := range row.parts {
			f(part)
		}
	}
}

func TestTable_EveryRowIsComplete(t *testing.T) {
	categories := []string{"lock", "read", "id", "work", "admin", "force", "events", "info", "connection"}
	every(NewTable(Deps{}), func(row *command) {
		switch {
		case row.name == "" || row.name != strings.ToLower(row.name) || len(row.name) > maxCommandName:
			t.Errorf("%q is not a name that can be looked up", row.name)
		case !strings.HasSuffix(row.summary, ".") || row.since == "" || len(row.flags) == 0:
			t.Errorf("%s lacks a summary that is a sentence, a version or flags", row.full)
		case !slices.Contains(categories, row.category):
			t.Errorf("%s has category %q", row.full, row.category)
		case row.handle == nil && (len(row.parts) == 0 || row.arity.fits(1)):
			t.Errorf("%s can be called but has no handler", row.full)
		}
	})
}

// words counts the fewest and most words that a syntax allows; most is at
// least noLimit/2 when there is a repetition.
func words(args []argument) (least, most int) {
	for _, a := range args {
		few, many := 1, 1
		switch a.kind {
		case kindBlock:
			few, many = words(a.parts)
		case kindOneOf:
			few, many = words(a.parts[:1])
		}
		if a.word != "" && a.kind != kindWord {
			few, many = few+1, many+1
		}
		if a.optional {
			few = 0
		}
		if a.multiple {
			many = noLimit / 2
		}
		least, most = least+few, most+many
	}
	return least, most
}

func TestTable_ArityAgreesWithTheDocumentedArguments(t *testing.T) {
	every(NewTable(Deps{}), func(row *command) {
		name := 1 + strings.Count(row.full, "|")
		least, most := words(row.args)
		if len(row.parts) > 0 {
			return // the bare word of a command with subcommands
		}
		if row.arity.min != name+least {
			t.Errorf("%s: at least %d words by arity, %d by its arguments", row.syntax, row.arity.min, name+least)
		}
		if row.arity.max != noLimit && row.arity.max != name+most {
			t.Errorf("%s: at most %d words by arity, %d by its arguments", row.syntax, row.arity.max, name+most)
		}
	})
}

func TestTable_WritesSyntaxAsPeopleReadIt(t *testing.T) {
	want := map[string]string{
		"dlock":           "DLOCK key ttl [SHARED | LIMIT n] [FAIR] [WAIT ms] [TOKEN token] [META text] [HOLD [max-ms]]",
		"dunlock":         "DUNLOCK key [token]",
		"dextend":         "DEXTEND key token ttl",
		"ping":            "PING [message]",
		"quit":            "QUIT",
		"auth":            "AUTH [username] password",
		"hello":           "HELLO [protover [AUTH username password] [SETNAME name]]",
		"client":          "CLIENT",
		"client|id":       "CLIENT ID",
		"client|no-evict": "CLIENT NO-EVICT <ON | OFF>",
		"client|setinfo":  "CLIENT SETINFO <LIB-NAME libname | LIB-VER libver>",
		"client|tracking": "CLIENT TRACKING <ON | OFF> [OPTIN]",
		"config|get":      "CONFIG GET parameter [parameter ...]",
		"info":            "INFO [section [section ...]]",
	}
	every(NewTable(Deps{}), func(row *command) {
		if w, ok := want[row.full]; ok && w != row.syntax {
			t.Errorf(" got %s\nwant %s", row.syntax, w)
		}
		delete(want, row.full)
	})
	if len(want) > 0 {
		t.Errorf("not in the table: %v", want)
	}
}

func TestMarkdown_HasOneLineForEveryCommandThatCanBeCalled(t *testing.T) {
	table := NewTable(Deps{})
	page := table.Markdown()
	lines := strings.Split(strings.TrimSuffix(page, "\n"), "\n")[2:]
	callable := 0
	every(table, func(row *command) {
		if row.handle != nil {
			callable++
		}
	})
	if len(lines) != callable {
		t.Errorf("%d lines for %d commands", len(lines), callable)
	}
	for _, line := range lines {
		if cells := strings.Count(strings.ReplaceAll(line, `\|`, ""), "|"); cells != 4 {
			t.Errorf("%d bars in %s", cells, line)
		}
	}
	first := "| `DLOCK key ttl [SHARED \\| LIMIT n] [FAIR] [WAIT ms] [TOKEN token] [META text] [HOLD [max-ms]]` | Takes a lock for ttl milliseconds: [token, validity, fence], or nil if another token holds it. After WAIT, DEXTEND confirms it. | lock |"
	if lines[0] != first {
		t.Errorf(" got %s\nwant %s", lines[0], first)
	}
}

func TestHelp_ListsEverySubcommand(t *testing.T) {
	got := newConversation(t).say("CONFIG HELP")
	want := `[+Subcommands of CONFIG: +CONFIG GET parameter [parameter ...] +    Options whose names match the patterns, with their values. +CONFIG HELP +    Lists the subcommands.]`
	if got != want {
		t.Errorf(" got %s\nwant %s", got, want)
	}
}
