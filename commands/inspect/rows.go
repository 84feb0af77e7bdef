// The rows of what operators see.

package inspect

import (
	"redlockd/commands"
	"redlockd/commands/access"
	"redlockd/commands/arg"
)

func Rows(deps commands.Deps) []*commands.Command {
	h := &handlers{deps}
	return append(h.masterRows(), h.inspectRows()...)
}

func (h *handlers) masterRows() []*commands.Command {
	return []*commands.Command{{
		Name: "dmasters", Arity: commands.Exactly(1), Category: access.CategoryRead, Flags: []string{"readonly", "fast"},
		Summary: "Shows the masters: a map for each, with its state, latency, queue and votes.",
		Handle:  h.dmasters,
		Parts: []*commands.Command{
			h.drainRow("drain", "Sends a master no new requests from this daemon, for its maintenance.", func(name string) error { return h.deps.Masters.DrainMaster(name) }),
			h.drainRow("undrain", "Ends the drain of a master.", func(name string) error { return h.deps.Masters.UndrainMaster(name) }),
		},
	}}
}

func (h *handlers) drainRow(name, summary string, apply func(master string) error) *commands.Command {
	return &commands.Command{
		Name: name, Arity: commands.Exactly(3), Category: access.CategoryAdmin, Summary: summary,
		Flags: []string{"admin"}, Args: []arg.Spec{arg.Text("master")},
		Handle: func(c *commands.Call) error {
			if err := apply(c.Args[2]); err != nil {
				return err
			}
			return c.Reply(commands.OK)
		},
	}
}

func (h *handlers) inspectRows() []*commands.Command {
	key := arg.Key()
	return []*commands.Command{
		{Name: "dinfo", Arity: commands.Exactly(2), Category: access.CategoryRead, Flags: []string{"readonly", "fast"}, Tried: []string{"dget", "dholder"},
			Summary: "Shows a lock: a map of its state, holders, waiters and what each master has.",
			Args:    []arg.Spec{key}, Handle: h.dinfo},
		{Name: "dlocks", Arity: commands.Between(2, 6), Category: access.CategoryRead, Flags: []string{"readonly"}, Further: stepWeight - 1,
			Summary: "Walks over the locks as SCAN does over keys: [cursor, [key, mode, holders, ttl, ...]].",
			Tried:   []string{"scan", "keys", "locks", "dlist", "dkeys"},
			Args:    []arg.Spec{arg.Integer("cursor"), arg.Optional(arg.Option("MATCH", arg.Text("pattern"))), arg.Optional(arg.Option("COUNT", arg.Integer("n")))},
			Handle:  h.dlocks},
		{Name: "dwaiters", Arity: commands.Between(1, 2), Category: access.CategoryRead, Flags: []string{"readonly", "fast"},
			Summary: "Shows the requests that wait in this daemon, since when and for how long.",
			Args:    []arg.Spec{arg.Optional(key)}, Handle: h.dwaiters},
		{Name: "drevoke", Arity: commands.Between(2, 3), Category: access.CategoryLock, Flags: []string{"write"}, Further: stepWeight - 1,
			Summary: "Requests that the holders of a lock let go, and changes nothing: how many connections, of all daemons, hold it with HOLD and are notified.",
			Tried:   []string{"revoke"}, Args: []arg.Spec{key, arg.Optional(arg.Text("text"))}, Handle: h.drevoke},
		{Name: "dmeta", Arity: commands.Exactly(4), Category: access.CategoryLock, Flags: []string{"write", "fast"},
			Summary: "Replaces the META of a holder while it holds the lock: 1, or 0 if the token does not hold it.",
			Args:    []arg.Spec{key, arg.Text("token"), arg.Text("text")}, Handle: h.dmeta},
		{Name: "dforce", Arity: commands.Exactly(2), Category: access.CategoryForce, Flags: []string{"write", "admin"},
			Summary: "Releases a lock regardless of its holder: 1, or 0 if it is free.",
			Args:    []arg.Spec{key}, Handle: h.dforce},
	}
}
