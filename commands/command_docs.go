// What COMMAND and HELP reply about rows. COMMAND describes the table as Redis 7
// describes its own commands: redis-cli completes and hints from that, and libraries find
// the keys. redis-cli ends its process on shapes it does not expect: names and texts are
// strings, flags are statuses. All clients share the replies about a row and about all
// rows: a client that does not read them costs no more than the list of names it sent.

package commands

import (
	"slices"
	"strings"

	"redlockd/commands/arg"
)

func namesOf(rows []*Command) Reply {
	names := make([]Reply, len(rows))
	for i, row := range rows {
		names[i] = Bulk(row.Full)
	}
	return Array(names...)
}

// entriesOf has nil where there is no row.
func entriesOf(rows []*Command) Reply {
	items := make([]Reply, len(rows))
	for i, row := range rows {
		if row != nil {
			items[i] = row.entry
		}
	}
	return Array(items...)
}

// documentsOf leaves out what is no row.
func documentsOf(rows []*Command) Reply {
	items := make([]Reply, 0, 2*len(rows))
	for _, row := range rows {
		if row != nil {
			items = append(items, Bulk(row.Full), row.document)
		}
	}
	return Map(items...)
}

// entry has ten elements: name, arity, flags, first key, last key, step,
// categories, tips, key specifications, subcommands.
func entry(row *Command) Reply {
	spec, flags := keySpecOf(row), row.Flags
	if spec.counted {
		flags = append(slices.Clip(flags), "movablekeys")
	}
	first, last, step := spec.positions(row)
	return Array(
		Bulk(row.Full), Int(row.Arity.redis()), statuses(flags), first, last, step,
		statuses([]string{"@" + row.Category}), Array(), spec.describe(row), entriesOf(row.Parts),
	)
}

// document is a map: summary, since, group, and where there are any,
// arguments and subcommands.
func document(row *Command) Reply {
	items := []Reply{
		Bulk("summary"), Bulk(row.Summary),
		Bulk("since"), Bulk(row.Since),
		Bulk("group"), Bulk(row.Category),
	}
	if len(row.Args) > 0 {
		items = append(items, Bulk("arguments"), argumentDocs(row.Args))
	}
	if len(row.Parts) > 0 {
		items = append(items, Bulk("subcommands"), documentsOf(row.Parts))
	}
	return Map(items...)
}

func argumentDocs(args []arg.Spec) Reply {
	items := make([]Reply, len(args))
	for i, a := range args {
		items[i] = argumentDoc(a)
	}
	return Array(items...)
}

// argumentDoc is a map: name, type, and where they apply key_spec_index,
// token, flags and the arguments of a group.
func argumentDoc(a arg.Spec) Reply {
	items := []Reply{Bulk("name"), Bulk(a.Name), Bulk("type"), Bulk(a.Kind)}
	if a.Kind == arg.KindKey {
		items = append(items, Bulk("key_spec_index"), Int(0))
	}
	if a.Word != "" {
		items = append(items, Bulk("token"), Bulk(a.Word))
	}
	var flags []string
	if a.Optional {
		flags = append(flags, "optional")
	}
	if a.Multiple {
		flags = append(flags, "multiple")
	}
	if len(flags) > 0 {
		items = append(items, Bulk("flags"), statuses(flags))
	}
	if len(a.Parts) > 0 {
		items = append(items, Bulk("arguments"), argumentDocs(a.Parts))
	}
	return Map(items...)
}

// helpRow is the HELP subcommand of a command with subcommands.
func helpRow(of *Command) *Command {
	return Connection("help", Exactly(2), "Lists the subcommands.", func(c *Call) error {
		lines := []Reply{Simple("Subcommands of " + strings.ToUpper(of.Name) + ":")}
		for _, part := range of.Parts {
			lines = append(lines, Simple(part.Syntax), Simple("    "+part.Summary))
		}
		return c.Reply(Array(lines...))
	})
}
