// The rows of what operators see.

package commands

import "redlockd/commands/access"

func (t *Table) masterRows() []*command {
	return []*command{{
		name: "dmasters", arity: exactly(1), category: access.CategoryRead, since: firstVersion,
		summary: "Shows the masters: a map for each, with its state, latency, queue and votes.",
		flags:   []string{"readonly", "fast"},
		handle:  served(t.deps.MasterStatus != nil, t.dmasters),
		parts: []*command{
			t.drainRow("drain", "Sends a master no new requests from this daemon, for its maintenance.", func(name string) error { return t.deps.MasterDrain.DrainMaster(name) }),
			t.drainRow("undrain", "Ends the drain of a master.", func(name string) error { return t.deps.MasterDrain.UndrainMaster(name) }),
		},
	}}
}

func (t *Table) drainRow(name, summary string, apply func(master string) error) *command {
	return &command{
		name: name, arity: exactly(3), category: access.CategoryAdmin, summary: summary,
		flags: []string{"admin"}, args: []argument{text("master")},
		handle: served(t.deps.MasterDrain != nil, func(c *Call) error {
			if err := apply(c.Args[2]); err != nil {
				return err
			}
			c.Reply(OK)
			return nil
		}),
	}
}

func (t *Table) inspectRows() []*command {
	key, on := keyArgument(), t.deps.Inspect != nil
	return []*command{
		{
			name: "dinfo", arity: exactly(2), category: access.CategoryRead, since: firstVersion,
			summary: "Shows a lock: a map of its state, holders, waiters and what each master has.",
			flags:   []string{"readonly", "fast"},
			args:    []argument{key},
			handle:  served(on, t.dinfo),
		},
		{
			name: "dlocks", arity: between(2, 6), category: access.CategoryRead, since: firstVersion,
			summary: "Walks over the locks as SCAN does over keys: [cursor, [key, mode, holders, ttl, ...]].",
			flags:   []string{"readonly"},
			args:    []argument{integer("cursor"), optional(option("MATCH", text("pattern"))), optional(option("COUNT", integer("n")))},
			handle:  served(on, t.dlocks),
		},
		{
			name: "dwaiters", arity: between(1, 2), category: access.CategoryRead, since: firstVersion,
			summary: "Shows the requests that wait in this daemon, since when and for how long.",
			flags:   []string{"readonly", "fast"},
			args:    []argument{optional(key)},
			handle:  served(on, t.dwaiters),
		},
		{
			name: "dforce", arity: exactly(2), category: access.CategoryForce, since: firstVersion,
			summary: "Releases a lock regardless of its holder: 1, or 0 if it is free.",
			flags:   []string{"write", "admin"},
			args:    []argument{key},
			handle:  served(on, t.dforce),
		},
	}
}
