// Table and its rows: every command, how it is written and which handler serves
// it. Dispatch, arity errors, COMMAND, help texts and the README table are all
// generated from these rows.

package commands

import (
	"sync"

	"redlockd/commands/access"
)

// Table answers commands. It is safe for concurrent use and never changes
// after NewTable.
type Table struct {
	users  *access.Users
	rows   []*command                     // in the order of the documentation
	byName map[string]*command            // by lower-case name
	parts  map[string]map[string]*command // subcommands by their command's name
	manual func() *manual                 // the replies of COMMAND, built at the first use

	deps     Deps
	channels channels // the subscriptions to locks
	scripts  scriptCache
	probes   prober
	fences   fences
}

// NewTable builds the commands of one daemon.
func NewTable(env Deps) *Table {
	env = env.withDefaults()
	t := &Table{
		users:  env.Users,
		byName: make(map[string]*command),
		parts:  make(map[string]map[string]*command),
		deps:   env,
	}
	t.scripts.stats = env.DropinStats
	t.channels.events, t.channels.users = env.Events, env.Users
	t.manual = sync.OnceValue(t.newManual)
	for _, group := range [][]*command{t.lockRows(), t.idRows(), t.workRows(), t.masterRows(), t.inspectRows(), t.dropinRows(), t.compatRows(), t.connectionRows(), t.clientRows(), t.channelRows(), t.serverRows()} {
		for _, row := range group {
			t.add(row)
		}
	}
	return t
}

// add registers a row and its subcommands, and adds a HELP subcommand.
func (t *Table) add(row *command) {
	row.full = row.name
	row.syntax, row.options = syntaxOf(row.full, row.args), optionsOf(row.args)
	t.rows = append(t.rows, row)
	t.byName[row.name] = row
	if len(row.parts) == 0 {
		return
	}
	if !row.named() { // in a named row HELP may be a name
		row.parts = append(row.parts, helpRow(row))
	}
	byName := make(map[string]*command)
	for _, part := range row.parts {
		part.since = row.since
		part.full = row.name + "|" + part.name
		part.syntax, part.options = syntaxOf(part.full, part.args), optionsOf(part.args)
		byName[part.name] = part
	}
	t.parts[row.name] = byName
}
