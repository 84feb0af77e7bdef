// The rows of work.

package commands

import "redlockd/commands/access"

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
