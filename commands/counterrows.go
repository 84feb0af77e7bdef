// The rows of counters.

package commands

import "redlockd/commands/access"

func (t *Table) idRows() []*command {
	name := argument{name: "name", kind: kindKey}
	on := t.deps.IDs != nil
	return []*command{
		{
			name: "dnextid", arity: between(2, 4), category: access.CategoryID, since: firstVersion,
			summary: "Gives the first of n consecutive new ids of a counter, above every id that was answered before.",
			flags:   []string{"write", "fast"},
			args:    []argument{name, optional(option("COUNT", integer("n")))},
			handle:  served(on, t.dnextid),
		},
		{
			name: "dids", arity: between(1, 2), category: access.CategoryRead, since: firstVersion,
			summary: "Shows counters as each master remembers them: name → [master, value, 1 if trusted].",
			flags:   []string{"readonly"},
			args:    []argument{optional(name)},
			handle:  served(on, t.dids),
			parts: []*command{{
				name: "del", arity: exactly(5), category: access.CategoryAdmin,
				summary: "Deletes a counter whose value is confirmed: [master, deleted, absent, changed or unanswered] for each. Its ids begin at 1 again.",
				flags:   []string{"write", "admin"},
				args:    []argument{text("name"), option("CONFIRM", integer("value"))},
				handle:  served(on, t.didsDel),
			}},
		},
		{
			name: "didreseed", arity: exactly(3), category: access.CategoryAdmin, since: firstVersion,
			summary: "Sets a counter whose value was lost; refused below any value that a master still has.",
			flags:   []string{"write", "admin"},
			args:    []argument{name, integer("value")},
			handle:  served(on, t.didreseed),
		},
	}
}
