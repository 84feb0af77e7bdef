package commands_test

import (
	"cmp"

	"redlockd/commands"
	"redlockd/commands/conn"
	"redlockd/commands/counter"
	"redlockd/commands/inspect"
	"redlockd/commands/lock"
	"redlockd/commands/rediscompat"
	"redlockd/commands/work"
)

// newTable is a table with all commands, as the daemon builds it. What deps leaves out has no
// figures, events and connections.
func newTable(deps commands.Deps) *commands.Table {
	deps.RedisCompat = cmp.Or[commands.RedisCompat](deps.RedisCompat, &oneRedis{})
	deps.Masters = cmp.Or[commands.Masters](deps.Masters, &fakeFigures{})
	deps.Inspect = cmp.Or[commands.Inspect](deps.Inspect, &fakeInspect{})
	deps.Connections = cmp.Or[commands.Connections](deps.Connections, &fakeConnections{})
	if deps.Clients == nil {
		deps.Clients = func() commands.ClientCounts { return commands.ClientCounts{} }
	}
	if deps.Config == nil {
		deps.Config = func(string) [][2]string { return nil }
	}
	return commands.NewTable(deps, lock.Rows, counter.Rows, work.Rows, inspect.Rows, rediscompat.Rows, conn.Rows)
}
