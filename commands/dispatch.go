// Table finds the row of a command and runs it, or replies with the error text of Redis.

package commands

import (
	"cmp"
	"strings"

	"redlockd/commands/access"
	"redlockd/commands/arg"
)

// MaxCommandName bounds the words that are looked up; a test checks that every
// name in the table is shorter.
const MaxCommandName = 32

// ShownBytes is how much of an unknown command its error repeats. Redis cuts at
// the same length, and libraries match on the text.
const ShownBytes = 128

// Table answers commands. It is safe for concurrent use and never changes
// after NewTable.
type Table struct {
	users  *access.Users
	holds  holdWatch
	rows   []*Command          // in the order of the documentation
	byName map[string]*Command // by lower-case name
	tried  map[string]*Command // by the names that are tried for it

	entries, documents, names Reply // of COMMAND, about all rows
}

// Rows makes the commands of one package from what they use.
type Rows func(Deps) []*Command

// NewTable builds the commands of one daemon from those of the packages, in the order
// of the documentation.
func NewTable(deps Deps, groups ...Rows) *Table {
	deps = deps.withDefaults()
	t := &Table{
		users:  deps.Users,
		holds:  newHoldWatch(deps.Logger),
		byName: make(map[string]*Command),
		tried:  make(map[string]*Command),
	}
	for _, rows := range groups {
		for _, row := range rows(deps) {
			t.add(row)
		}
	}
	t.entries, t.documents, t.names = entriesOf(t.rows), documentsOf(t.rows), namesOf(t.rows)
	return t
}

// add registers a row and its subcommands, and adds a HELP subcommand.
func (t *Table) add(row *Command) {
	row.Since = cmp.Or(row.Since, FirstVersion)
	t.rows = append(t.rows, row)
	t.byName[row.Name] = row
	for _, name := range row.Tried {
		t.tried[name] = row
	}
	if len(row.Parts) > 0 && !row.Named() { // in a named row HELP may be a name
		row.Parts = append(row.Parts, helpRow(row))
	}
	row.byName = make(map[string]*Command, len(row.Parts))
	for _, part := range row.Parts {
		part.Since = row.Since
		part.fill(row.Name + "|" + part.Name)
		row.byName[part.Name] = part
	}
	row.fill(row.Name) // after its parts
}

func (c *Command) fill(full string) {
	c.Full = full
	c.Syntax, c.options = arg.Syntax(full, c.Args), arg.Options(c.Args)
	c.entry, c.document = entry(c), document(c)
}

// Plan is what a connection considers before it starts a command.
type Plan struct {
	// Barrier: the command runs alone, after the replies to all earlier commands of its
	// connection and before any later one starts.
	Barrier bool
	// Weight is how many commands on one key are as much work; at least 1.
	Weight int
}

const (
	// plainWords are as many as a command on one key has.
	plainWords = 12
	// wordWeight is for each further word: DMLOCK of 64 keys is as much work for the masters
	// as so many locks, and is undone on all of them if one key is taken.
	wordWeight = 2
)

// Plan returns the plan of a call. Without a row the call is an error, which weighs 1.
func (t *Table) Plan(args []string) Plan {
	plan := Plan{Weight: 1 + wordWeight*max(0, len(args)-plainWords)}
	if len(args) == 0 {
		return plan
	}
	if row := find(t.byName, args[0]); row != nil {
		plan.Barrier = row.Barrier != nil && row.Barrier(args)
		plan.Weight += row.Further
	}
	return plan
}

// Dispatch hands the call to its command. Every call is answered exactly once
// through its Completer, before Dispatch returns or later.
func (t *Table) Dispatch(c *Call) {
	c.table = t
	row, mistake := t.route(c.Args)
	switch {
	case mistake != nil:
		c.reject(c.countUnknown(), Error("ERR", mistake.Error()))
	case !row.Arity.Fits(len(c.Args)):
		c.reject(c.chargeRate(), row.refuse(row.wrongArity()))
	case !c.allow(row):
		c.Client.Transaction.refused()
	default:
		t.holds.see(c, row)
		if c.queues(row) {
			return
		}
		c.row = row
		if tracking := c.Client.Tracking; tracking != nil {
			tracking.begin(c)
		}
		if mistake := row.Handle(c); mistake != nil {
			c.Reply(row.refuse(mistake))
		}
	}
}

// reject answers a call that no row serves: with what its user's rate refuses, if it does.
func (c *Call) reject(beyondRate error, refusal Reply) {
	c.Client.Transaction.refused()
	if beyondRate != nil {
		refusal = Error("TRYLATER", beyondRate.Error())
	}
	c.Reply(refusal)
}

// route finds the row of a command or subcommand.
func (t *Table) route(args []string) (*Command, error) {
	if len(args) == 0 {
		return nil, unknownCommand([]string{""})
	}
	row := find(t.byName, args[0])
	if row == nil {
		if meant := find(t.tried, args[0]); meant != nil {
			return nil, RedisText(unknownCommand(args).Error() + "(did you mean " + meant.Syntax + "?)")
		}
		return nil, unknownCommand(args)
	}
	if len(row.Parts) == 0 || len(args) == 1 {
		return row, nil
	}
	if row.Named() && row.Arity.Fits(len(args)) {
		return row, nil // the word is a name, as in DIDS DEL
	}
	part := find(row.byName, args[1])
	switch {
	case part != nil:
		return part, nil
	case row.Named():
		return row, nil
	}
	return nil, RedisText("unknown subcommand '" + Clip(args[1], ShownBytes) + "'. Try " + strings.ToUpper(row.Name) + " HELP.")
}

// find looks a word up in any case. It does not allocate: the conversion in
// the index expression is free, and the copy stays on the stack.
func find(rows map[string]*Command, name string) *Command {
	var lower [MaxCommandName]byte
	if len(name) > len(lower) {
		return nil
	}
	for i := range len(name) {
		b := name[i]
		if 'A' <= b && b <= 'Z' {
			b += 'a' - 'A'
		}
		lower[i] = b
	}
	return rows[string(lower[:len(name)])]
}

// unknownCommand repeats the text of Redis word for word: jedis, lettuce,
// Vert.x, ioredis, Spring and rueidis decide by this text what a server supports.
// The arguments are listed until the list is 128 bytes long. The last one is cut
// so that its text, without quotes, just fits.
func unknownCommand(args []string) error {
	var list strings.Builder
	for _, one := range args[1:] {
		space := ShownBytes - list.Len()
		if space <= 0 {
			break
		}
		list.WriteString("'" + Clip(one, space) + "' ")
	}
	return RedisText("unknown command '" + Clip(args[0], ShownBytes) + "', with args beginning with: " + list.String())
}

// Clip cuts a text after n bytes and, as Redis does, at its first NUL.
func Clip(s string, n int) string {
	s, _, _ = strings.Cut(s, "\x00")
	return s[:min(len(s), n)]
}
