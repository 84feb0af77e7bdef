// Table and its rows: every command, how it is written and which handler serves
// it. Dispatch, arity errors, COMMAND, help texts and the README table are all
// generated from these rows.

package commands

import (
	"sync"

	"redlockd/commands/access"
	"redlockd/commands/arg"
)

// Table answers commands. It is safe for concurrent use and never changes
// after NewTable.
type Table struct {
	users  *access.Users
	rows   []*Command                     // in the order of the documentation
	byName map[string]*Command            // by lower-case name
	tried  map[string]*Command            // by the names that are tried for it
	parts  map[string]map[string]*Command // subcommands by their command's name
	manual func() *manual                 // the replies of COMMAND, built at the first use
}

// Rows makes the commands of one package from what they use.
type Rows func(Deps) []*Command

// NewTable builds the commands of one daemon from those of the packages, in the order
// of the documentation.
func NewTable(deps Deps, groups ...Rows) *Table {
	deps = deps.withDefaults()
	t := &Table{
		users:  deps.Users,
		byName: make(map[string]*Command),
		tried:  make(map[string]*Command),
		parts:  make(map[string]map[string]*Command),
	}
	t.manual = sync.OnceValue(t.newManual)
	for _, rows := range groups {
		for _, row := range rows(deps) {
			t.add(row)
		}
	}
	return t
}

// add registers a row and its subcommands, and adds a HELP subcommand.
func (t *Table) add(row *Command) {
	row.Full = row.Name
	row.Syntax, row.options = arg.Syntax(row.Full, row.Args), arg.Options(row.Args)
	t.rows = append(t.rows, row)
	t.byName[row.Name] = row
	for _, name := range row.Tried {
		t.tried[name] = row
	}
	if len(row.Parts) == 0 {
		return
	}
	if !row.Named() { // in a named row HELP may be a name
		row.Parts = append(row.Parts, helpRow(row))
	}
	byName := make(map[string]*Command)
	for _, part := range row.Parts {
		part.Since = row.Since
		part.Full = row.Name + "|" + part.Name
		part.Syntax, part.options = arg.Syntax(part.Full, part.Args), arg.Options(part.Args)
		byName[part.Name] = part
	}
	t.parts[row.Name] = byName
}
