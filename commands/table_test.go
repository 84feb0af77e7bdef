package commands_test

import (
	"slices"
	"strings"
	"testing"

	"redlockd/commands"
	"redlockd/commands/arg"
)

// every calls f for each row and subcommand.
func every(t *commands.Table, f func(*commands.Command)) {
	for _, row := range t.Rows() {
		f(row)
		for _, part := range row.Parts {
			f(part)
		}
	}
}

func TestTable_EveryRowIsComplete(t *testing.T) {
	categories := []string{"lock", "read", "id", "work", "admin", "force", "events", "info", "connection"}
	every(newTable(commands.Deps{}), func(row *commands.Command) {
		switch {
		case row.Name == "" || row.Name != strings.ToLower(row.Name) || len(row.Name) > commands.MaxCommandName:
			t.Errorf("%q is not a name that can be looked up", row.Name)
		case !strings.HasSuffix(row.Summary, ".") || row.Since == "" || len(row.Flags) == 0:
			t.Errorf("%s lacks a summary that is a sentence, a version or flags", row.Full)
		case !slices.Contains(categories, row.Category):
			t.Errorf("%s has category %q", row.Full, row.Category)
		case row.Handle == nil && (len(row.Parts) == 0 || row.Arity.Fits(1)):
			t.Errorf("%s can be called but has no handler", row.Full)
		}
	})
}

// words counts the fewest and most words that a syntax allows; most is at
// least noLimit/2 when there is a repetition.
func words(args []arg.Spec) (least, most int) {
	for _, a := range args {
		few, many := 1, 1
		switch a.Kind {
		case arg.KindBlock:
			few, many = words(a.Parts)
		case arg.KindOneOf:
			few, many = words(a.Parts[:1])
		}
		if a.Word != "" && a.Kind != arg.KindWord {
			few, many = few+1, many+1
		}
		if a.Optional {
			few = 0
		}
		if a.Multiple {
			many = commands.NoLimit / 2
		}
		least, most = least+few, most+many
	}
	return least, most
}

func TestTable_ArityAgreesWithTheDocumentedArguments(t *testing.T) {
	every(newTable(commands.Deps{}), func(row *commands.Command) {
		name := 1 + strings.Count(row.Full, "|")
		least, most := words(row.Args)
		if len(row.Parts) > 0 {
			return // the bare word of a command with subcommands
		}
		if row.Arity.Min != name+least {
			t.Errorf("%s: at least %d words by arity, %d by its arguments", row.Syntax, row.Arity.Min, name+least)
		}
		if row.Arity.Max != commands.NoLimit && row.Arity.Max != name+most {
			t.Errorf("%s: at most %d words by arity, %d by its arguments", row.Syntax, row.Arity.Max, name+most)
		}
	})
}

func TestTable_WritesSyntaxAsPeopleReadIt(t *testing.T) {
	want := map[string]string{
		"dlock":           "DLOCK key ttl [SHARED | LIMIT n | REENTRANT] [FAIR] [DELAY ms] [WAIT ms] [TOKEN token] [META text] [HOLD [max-ms]] [MAXHOLD ms]",
		"dunlock":         "DUNLOCK key [token [KEEP ms | REENTRANT]]",
		"dextend":         "DEXTEND key token ttl [DELAY ms]",
		"ping":            "PING [message]",
		"quit":            "QUIT",
		"auth":            "AUTH [username] password",
		"hello":           "HELLO [protover [AUTH username password] [SETNAME name]]",
		"client":          "CLIENT",
		"client|id":       "CLIENT ID",
		"client|no-evict": "CLIENT NO-EVICT <ON | OFF>",
		"client|setinfo":  "CLIENT SETINFO <LIB-NAME libname | LIB-VER libver>",
		"client|tracking": "CLIENT TRACKING <ON | OFF> [REDIRECT client-id] [PREFIX prefix [PREFIX prefix ...]] [BCAST] [OPTIN] [OPTOUT] [NOLOOP]",
		"config|get":      "CONFIG GET parameter [parameter ...]",
		"info":            "INFO [section [section ...]]",
	}
	every(newTable(commands.Deps{}), func(row *commands.Command) {
		if w, ok := want[row.Full]; ok && w != row.Syntax {
			t.Errorf(" got %s\nwant %s", row.Syntax, w)
		}
		delete(want, row.Full)
	})
	if len(want) > 0 {
		t.Errorf("not in the table: %v", want)
	}
}

func TestMarkdown_HasOneLineForEveryCommandThatCanBeCalled(t *testing.T) {
	table := newTable(commands.Deps{})
	page := markdown(table.Rows())
	lines := strings.Split(strings.TrimSuffix(page, "\n"), "\n")[2:]
	callable := 0
	every(table, func(row *commands.Command) {
		if row.Handle != nil {
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
	first := "| `DLOCK key ttl [SHARED \\| LIMIT n \\| REENTRANT] [FAIR] [DELAY ms] [WAIT ms] [TOKEN token] [META text] [HOLD [max-ms]] [MAXHOLD ms]` | Takes a lock for ttl milliseconds (30000 = 30 s): [token, validity, fence], or nil if another token holds it. After WAIT, DEXTEND confirms it. With DELAY the key stays taken that much longer. | lock |"
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
