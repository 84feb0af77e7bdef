// The replies of COMMAND. They describe the table as Redis 7 describes its own
// commands: redis-cli completes and hints from them, and libraries find the keys.
// redis-cli ends its process on shapes it does not expect: names and texts are
// strings, flags are statuses.

package commands

import (
	"strings"

	"redlockd/commands/access"
	"redlockd/commands/arg"
)

// manual holds the replies of COMMAND for each row. All clients share them: a
// client that does not read them costs no more than the list of names it sent.
type manual struct {
	entries   map[*Command]Reply
	documents map[*Command]Reply
	all       Reply // the entry of every command
	allDocs   Reply // the document of every command
	names     Reply // the name of every command
}

func (t *Table) newManual() *manual {
	m := &manual{entries: make(map[*Command]Reply), documents: make(map[*Command]Reply)}
	for _, row := range t.rows {
		m.add(row)
		for _, part := range row.Parts {
			m.add(part)
		}
	}
	m.all, m.allDocs, m.names = m.entriesOf(t.rows), m.documentsOf(t.rows), namesOf(t.rows)
	return m
}

func (m *manual) add(row *Command) { m.entries[row], m.documents[row] = entry(row), document(row) }

// entriesOf has nil where there is no row.
func (m *manual) entriesOf(rows []*Command) Reply {
	items := make([]Reply, len(rows))
	for i, row := range rows {
		items[i] = m.entries[row]
	}
	return Array(items...)
}

func (m *manual) documentsOf(rows []*Command) Reply {
	items := make([]Reply, 0, 2*len(rows))
	for _, row := range rows {
		items = append(items, Bulk(row.Full), m.documents[row])
	}
	return Map(items...)
}

// CommandRow is the row of COMMAND.
func CommandRow() *Command {
	names := arg.Optional(arg.Multiple(arg.Text("command-name")))
	row := OfCategory(access.CategoryInfo, Connection("command", AtLeast(1), "Describes the commands.", commandAll))
	row.Parts = []*Command{
		Connection("count", Exactly(2), "How many commands there are.", commandCount),
		OfCategory(access.CategoryInfo, Connection("docs", AtLeast(2), "Summaries and arguments of commands.", commandDocs, names)),
		OfCategory(access.CategoryInfo, Connection("info", AtLeast(2), "Arity, flags and keys of commands.", commandInfo, names)),
		OfCategory(access.CategoryInfo, Connection("list", Exactly(2), "The names of all commands.", commandList)),
	}
	return row
}

// commandAll answers bare COMMAND: the entry of every command.
func commandAll(c *Call) error {
	c.Reply(c.table.manual().all)
	return nil
}

func commandCount(c *Call) error {
	c.Reply(Int(int64(len(c.table.rows))))
	return nil
}

func commandList(c *Call) error {
	c.Reply(c.table.manual().names)
	return nil
}

func namesOf(rows []*Command) Reply {
	names := make([]Reply, len(rows))
	for i, row := range rows {
		names[i] = Bulk(row.Full)
	}
	return Array(names...)
}

// commandInfo answers the entries of the named commands, nil for unknown ones.
func commandInfo(c *Call) error {
	if len(c.Args) == 2 {
		return commandAll(c)
	}
	rows := make([]*Command, 0, len(c.Args)-2)
	for _, name := range c.Args[2:] {
		rows = append(rows, c.table.named(name))
	}
	c.Reply(c.table.manual().entriesOf(rows))
	return nil
}

// commandDocs answers a map of the named commands; unknown ones are left out.
func commandDocs(c *Call) error {
	if len(c.Args) == 2 {
		c.Reply(c.table.manual().allDocs)
		return nil
	}
	var rows []*Command
	for _, name := range c.Args[2:] {
		if row := c.table.named(name); row != nil {
			rows = append(rows, row)
		}
	}
	c.Reply(c.table.manual().documentsOf(rows))
	return nil
}

// named finds "client" as well as "client|id".
func (t *Table) named(name string) *Command {
	name, part, both := strings.Cut(name, "|")
	row := find(t.byName, name)
	if row != nil && both {
		return find(t.parts[row.Name], part)
	}
	return row
}

func entries(rows []*Command) Reply {
	items := make([]Reply, len(rows))
	for i, row := range rows {
		items[i] = entry(row)
	}
	return Array(items...)
}

// entry has ten elements: name, arity, flags, first key, last key, step,
// categories, tips, key specifications, subcommands.
func entry(row *Command) Reply {
	first, specs := int64(0), Array()
	if row.keyed() {
		first, specs = 1, Array(keySpec())
	}
	return Array(
		Bulk(row.Full), Int(row.Arity.redis()), statuses(row.Flags),
		Int(first), Int(first), Int(first),
		statuses([]string{"@" + row.Category}), Array(), specs, entries(row.Parts),
	)
}

// keySpec: one key, the first argument, read and changed.
func keySpec() Reply {
	begin := Map(Bulk("type"), Bulk("index"), Bulk("spec"), Map(Bulk("index"), Int(1)))
	reach := Map(Bulk("lastkey"), Int(0), Bulk("keystep"), Int(1), Bulk("limit"), Int(0))
	return Map(
		Bulk("flags"), statuses([]string{"RW", "access", "update"}),
		Bulk("begin_search"), begin,
		Bulk("find_keys"), Map(Bulk("type"), Bulk("range"), Bulk("spec"), reach),
	)
}

func documents(rows []*Command) Reply {
	items := make([]Reply, 0, 2*len(rows))
	for _, row := range rows {
		items = append(items, Bulk(row.Full), document(row))
	}
	return Map(items...)
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
		items = append(items, Bulk("subcommands"), documents(row.Parts))
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

func statuses(texts []string) Reply {
	items := make([]Reply, len(texts))
	for i, text := range texts {
		items[i] = Simple(text)
	}
	return Array(items...)
}
