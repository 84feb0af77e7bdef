package commands_test

import (
	"redlockd/commands"
	"redlockd/commands/conn"
	"redlockd/commands/counter"
	"redlockd/commands/inspect"
	"redlockd/commands/lock"
	"redlockd/commands/rediscompat"
	"redlockd/commands/work"
)

// newTable is a table with all commands, as the daemon builds it.
func newTable(deps commands.Deps) *commands.Table {
	return commands.NewTable(deps, lock.Rows, counter.Rows, work.Rows, inspect.Rows, rediscompat.Rows, conn.Rows)
}
