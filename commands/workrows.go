// The rows of ids and of work locks.

package commands

import (
	"fmt"
	"redlockd/commands/access"
	"strings"
)

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

func (t *Table) workRows() []*command {
	key, token, timeout := keyArgument(), text("token"), integer("timeout")
	on, ends := t.deps.Works != nil, t.deps.WorkEnds != nil
	options := []argument{
		option("MAX", integer("n")),
		optional(option("WAIT", integer("ms"))), optional(option("KEEP", integer("ms"))), optional(option("META", text("text"))),
	}
	return []*command{
		{
			name: "dwork", arity: atLeast(5), category: access.CategoryWork, since: firstVersion,
			summary: "Requests an attempt at a piece of work: [acquired, attempt, token, validity, fence, last], [running, attempt, retry-ms], [done, attempt] or [exhausted, n]. After WAIT, DWORKEXTEND confirms it.",
			flags:   []string{"write", "blocking"},
			args:    append([]argument{key, timeout}, options...),
			handle:  served(on, t.dwork), barrier: blocksWork,
		},
		{
			name: "dworkdone", arity: exactly(3), category: access.CategoryWork, since: firstVersion,
			summary: "Marks the work done: 1, or 0 if the attempt was taken over.",
			flags:   []string{"write", "fast"},
			args:    []argument{key, token},
			handle:  served(ends, t.dworkdone),
		},
		{
			name: "dworkfail", arity: exactly(3), category: access.CategoryWork, since: firstVersion,
			summary: "Gives the attempt up, so that the next may start at once: 1, or 0 if it was taken over.",
			flags:   []string{"write", "fast"},
			args:    []argument{key, token},
			handle:  served(ends, t.dworkfail),
		},
		{
			name: "dworkextend", arity: exactly(4), category: access.CategoryWork, since: firstVersion,
			summary: "Makes the attempt last at least timeout milliseconds from now: its validity, or nil if it was taken over.",
			flags:   []string{"write", "fast"},
			args:    []argument{key, token, timeout},
			handle:  served(ends, t.dworkextend),
		},
		{
			name: "dworkinfo", arity: exactly(2), category: access.CategoryRead, since: firstVersion,
			summary: "Shows what a quorum of masters has of a piece of work, or nil.",
			flags:   []string{"readonly", "fast"},
			args:    []argument{key},
			handle:  served(on, t.dworkinfo),
		},
	}
}

// served is the handler if what it needs is there, else a refusal: the table
// is the same in every daemon.
func served(there bool, h handler) handler {
	if there {
		return h
	}
	return func(c *Call) error {
		return fmt.Errorf("%s is not served by this daemon", strings.ToUpper(c.Args[0]))
	}
}
