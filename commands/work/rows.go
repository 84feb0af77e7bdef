// The rows of work.

package work

import (
	"redlockd/commands"
	"redlockd/commands/access"
	"redlockd/commands/arg"
)

func Rows(deps commands.Deps) []*commands.Command {
	h := &handlers{deps}
	key, token, timeout := arg.Key(), arg.Text("token"), arg.Integer("timeout")
	options := []arg.Spec{
		arg.Option("MAX", arg.Integer("n")),
		arg.Optional(arg.Option("WAIT", arg.Integer("ms"))), arg.Optional(arg.Option("KEEP", arg.Integer("ms"))), arg.Optional(arg.Option("META", arg.Text("text"))),
	}
	return []*commands.Command{
		{Name: "dwork", Arity: commands.AtLeast(5), Category: access.CategoryWork, Flags: []string{"write", "blocking"},
			Summary: "Requests an attempt at a piece of work: [acquired, attempt, token, validity, fence, last], [running, attempt, retry-ms], [done, attempt, result if there is one] or [exhausted, n]. After WAIT, DWORKEXTEND confirms it.",
			Args:    append([]arg.Spec{key, timeout}, options...), Handle: h.dwork, Barrier: blocksWork},
		{Name: "dworkdone", Arity: commands.Between(3, 5), Category: access.CategoryWork, Flags: []string{"write", "fast"},
			Summary: "Marks the work done: 1, or 0 if the attempt was taken over. DWORK and DWORKINFO show the result.",
			Args:    []arg.Spec{key, token, arg.Optional(arg.Option("RESULT", arg.Text("result")))}, Handle: h.dworkdone},
		{Name: "dworkfail", Arity: commands.Exactly(3), Category: access.CategoryWork, Flags: []string{"write", "fast"},
			Summary: "Gives the attempt up, so that the next may start at once: 1, or 0 if it was taken over.",
			Args:    []arg.Spec{key, token}, Handle: h.dworkfail},
		{Name: "dworkextend", Arity: commands.Exactly(4), Category: access.CategoryWork, Flags: []string{"write", "fast"},
			Summary: "Makes the attempt last at least timeout milliseconds from now: its validity, or nil if it was taken over.",
			Args:    []arg.Spec{key, token, timeout}, Handle: h.dworkextend},
		{Name: "dworkinfo", Arity: commands.Exactly(2), Category: access.CategoryRead, Flags: []string{"readonly", "fast"},
			Summary: "Shows what a quorum of masters has of a piece of work, or nil.",
			Args:    []arg.Spec{key}, Handle: h.dworkinfo},
	}
}
