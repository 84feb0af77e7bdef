// The rows of counters.

package counter

import (
	"redlockd/commands"
	"redlockd/commands/access"
	"redlockd/commands/arg"
)

func Rows(deps commands.Deps) []*commands.Command {
	h := &handlers{deps}
	name := arg.Spec{Name: "name", Kind: arg.KindKey}
	return []*commands.Command{
		{Name: "dnextid", Arity: commands.Between(2, 4), Category: access.CategoryID, Flags: []string{"write", "fast"},
			Summary: "Gives the first of n consecutive new ids of a counter, above every id that was answered before.",
			Tried:   []string{"nextid", "nextval", "did", "incr", "incrby"}, Args: []arg.Spec{name, arg.Optional(arg.Option("COUNT", arg.Integer("n")))},
			Handle: h.dnextid},
		{Name: "dids", Arity: commands.Between(1, 2), Category: access.CategoryRead, Flags: []string{"readonly"},
			Summary: "Shows counters as each master remembers them: name → [master, value, 1 if trusted].",
			Args:    []arg.Spec{arg.Optional(name)}, Handle: h.dids,
			Parts: []*commands.Command{{Name: "del", Arity: commands.Exactly(5), Category: access.CategoryAdmin, Flags: []string{"write", "admin"},
				Summary: "Deletes a counter whose value is confirmed: [master, deleted, absent, changed or unanswered] for each. Its ids begin at 1 again.",
				Args:    []arg.Spec{arg.KeyWithin("name"), arg.Option("CONFIRM", arg.Integer("value"))}, Handle: h.didsDel,
			}}},
		{Name: "didreseed", Arity: commands.Exactly(3), Category: access.CategoryAdmin, Flags: []string{"write", "admin"},
			Summary: "Sets a counter whose value was lost; refused below any value that a master still has.",
			Args:    []arg.Spec{name, arg.Integer("value")}, Handle: h.didreseed},
	}
}
