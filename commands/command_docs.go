// The replies of COMMAND. They describe the table as Redis 7 describes its own
// commands: redis-cli completes and hints from them, and libraries find the keys.
// redis-cli ends its process on shapes it does not expect: names and texts are
// strings, flags are statuses.

package commands

import (
	"strings"

	"redlockd/commands/access"
)

// manual holds the replies of COMMAND for each row. All clients share them: a
// client that does not read them costs no more than the list of names it sent.
type manual struct {
	entries   map[*command]Reply
	documents map[*command]Reply
	all       Reply // the entry of every command
}

func (t *Table) newManual() *manual {
	m := &manual{entries: make(map[*command]Reply), documents: make(map[*command]Reply)}
	for _, row := range t.rows {
		m.add(row)
		for _, part := range row.parts {
			m.add(part)
		}
	}
	m.all = m.entriesOf(t.rows)
	return m
}

func (m *manual) add(row *command) { m.entries[row], m.documents[row] = entry(row), document(row) }

// entriesOf has nil where there is no row.
func (m *manual) entriesOf(rows []*command) Reply {
	items := make([]Reply, len(rows))
	for i, row := range rows {
		items[i] = m.entries[row]
	}
	return Array(items...)
}

func (m *manual) documentsOf(rows []*command) Reply {
	items := make([]Reply, 0, 2*len(rows))
	for _, row := range rows {
		items = append(items, Bulk(row.full), m.documents[row])
	}
	return Map(items...)
}

// commandRow is the row of COMMAND.
func commandRow() *command {
	names := optional(multiple(text("command-name")))
	row := ofCategory(access.CategoryInfo, connection("command", atLeast(1), "Describes the commands.", commandAll))
	row.parts = []*command{
		connection("count", exactly(2), "How many commands there are.", commandCount),
		ofCategory(access.CategoryInfo, connection("docs", atLeast(2), "Summaries and arguments of commands.", commandDocs, names)),
		ofCategory(access.CategoryInfo, connection("info", atLeast(2), "Arity, flags and keys of commands.", commandInfo, names)),
		ofCategory(access.CategoryInfo, connection("list", exactly(2), "The names of all commands.", commandList)),
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
	rows := c.table.rows
	names := make([]Reply, len(rows))
	for i, row := range rows {
		names[i] = Bulk(row.full)
	}
	c.Reply(Array(names...))
	return nil
}

// commandInfo answers the entries of the named commands, nil for unknown ones.
func commandInfo(c *Call) error {
	if len(c.Args) == 2 {
		return commandAll(c)
	}
	rows := make([]*command, 0, len(c.Args)-2)
	for _, name := range c.Args[2:] {
		rows = append(rows, c.table.named(name))
	}
	c.Reply(c.table.manual().entriesOf(rows))
	return nil
}

// commandDocs answers a map of the named commands; unknown ones are left out.
func commandDocs(c *Call) error {
	rows := c.table.rows
	if len(c.Args) > 2 {
		rows = nil
		for _, name := range c.Args[2:] {
			if row := c.table.named(name); row != nil {
				rows = append(rows, row)
			}
		}
	}
	c.Reply(c.table.manual().documentsOf(rows))
	return nil
}

// named finds "client" as well as "client|id".
func (t *Table) named(name string) *command {
	name, part, both := strings.Cut(name, "|")
	row := find(t.byName, name)
	if row != nil && both {
		return find(t.parts[row.name], part)
	}
	return row
}

func entries(rows []*command) Reply {
	items := make([]Reply, len(rows))
	for i, row := range rows {
		items[i] = entry(row)
	}
	return Array(items...)
}

// entry has ten elements: name, arity, flags, first key, last key, step,
// categories, tips, key specifications, subcommands.
func entry(row *command) Reply {
	first, specs := int64(0), Array()
	if row.keyed() {
		first, specs = 1, Array(keySpec())
	}
	return Array(
		Bulk(row.full), Int(row.arity.redis()), statuses(row.flags),
		Int(first), Int(first), Int(first),
		statuses([]string{"@" + row.category}), Array(), specs, entries(row.parts),
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

func documents(rows []*command) Reply {
	items := make([]Reply, 0, 2*len(rows))
	for _, row := range rows {
		items = append(items, Bulk(row.full), document(row))
	}
	return Map(items...)
}

// document is a map: summary, since, group, and where there are any,
// arguments and subcommands.
func document(row *command) Reply {
	items := []Reply{
		Bulk("summary"), Bulk(row.summary),
		Bulk("since"), Bulk(row.since),
		Bulk("group"), Bulk(row.category),
	}
	if len(row.args) > 0 {
		items = append(items, Bulk("arguments"), argumentDocs(row.args))
	}
	if len(row.parts) > 0 {
		items = append(items, Bulk("subcommands"), documents(row.parts))
	}
	return Map(items...)
}

func argumentDocs(args []argument) Reply {
	items := make([]Reply, len(args))
	for i, a := range args {
		items[i] = argumentDoc(a)
	}
	return Array(items...)
}

// argumentDoc is a map: name, type, and where they apply key_spec_index,
// token, flags and the arguments of a group.
func argumentDoc(a argument) Reply {
	items := []Reply{Bulk("name"), Bulk(a.name), Bulk("type"), Bulk(a.kind)}
	if a.kind == kindKey {
		items = append(items, Bulk("key_spec_index"), Int(0))
	}
	if a.word != "" {
		items = append(items, Bulk("token"), Bulk(a.word))
	}
	var flags []string
	if a.optional {
		flags = append(flags, "optional")
	}
	if a.multiple {
		flags = append(flags, "multiple")
	}
	if len(flags) > 0 {
		items = append(items, Bulk("flags"), statuses(flags))
	}
	if len(a.parts) > 0 {
		items = append(items, Bulk("arguments"), argumentDocs(a.parts))
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
