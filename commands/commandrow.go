// COMMAND describes the commands of a table.

package commands

import (
	"redlockd/commands/access"
	"redlockd/commands/arg"
)

func CommandRow(deps Deps) *Command {
	of := deps.commands
	names := arg.Optional(arg.Multiple(arg.Text("command-name")))
	words := []arg.Spec{arg.Text("command"), arg.Multiple(arg.Text("arg"))}
	ofInfo := func(name string, arity Arity, summary string, handle Handler, args ...arg.Spec) *Command {
		return OfCategory(access.CategoryInfo, Connection(name, arity, summary, handle, args...))
	}
	all := func(c *Call) error { return c.Reply(of.entries) }
	row := ofInfo("command", AtLeast(1), "Describes the commands.", all)
	row.Parts = []*Command{
		Connection("count", Exactly(2), "How many commands there are.", func(c *Call) error { return c.Reply(Int(int64(len(of.rows)))) }),
		ofInfo("docs", AtLeast(2), "Summaries and arguments of commands.", func(c *Call) error {
			if len(c.Args) == 2 {
				return c.Reply(of.documents)
			}
			return c.Reply(documentsOf(of.named(c.Args[2:])))
		}, names),
		Connection("getkeys", AtLeast(4), "The names in a command.",
			getKeys(of, func(_ *Command, key string) Reply { return Bulk(key) }), words...),
		Connection("getkeysandflags", AtLeast(4), "The names in a command, each with what it does to them.",
			getKeys(of, func(row *Command, key string) Reply { return Array(Bulk(key), keyFlags(row)) }), words...),
		ofInfo("info", AtLeast(2), "Arity, flags and keys of commands.", func(c *Call) error {
			if len(c.Args) == 2 {
				return all(c)
			}
			return c.Reply(entriesOf(of.named(c.Args[2:])))
		}, names),
		ofInfo("list", Exactly(2), "The names of all commands.", func(c *Call) error { return c.Reply(of.names) }),
	}
	return row
}

// getKeys answers COMMAND GETKEYS and GETKEYSANDFLAGS with the texts of Redis, which
// redis-py distinguishes.
func getKeys(of *index, show func(*Command, string) Reply) Handler {
	return func(c *Call) error {
		words := c.Args[2:]
		row, err := of.route(words)
		if err != nil {
			return RedisText("Invalid command specified")
		}
		spec := keySpecOf(row)
		if spec.first == 0 {
			return RedisText("The command has no key arguments")
		}
		if !row.Arity.Fits(len(words)) {
			return RedisText("Invalid number of arguments specified for command")
		}
		keys := spec.keysOf(words)
		if len(keys) == 0 && !spec.optional {
			return RedisText("Invalid arguments specified for command")
		}
		items := make([]Reply, len(keys))
		for i, key := range keys {
			items[i] = show(row, key)
		}
		return c.Reply(Array(items...))
	}
}
