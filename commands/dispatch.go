// Table finds the row of a command and runs it, or replies with the error text of Redis.

package commands

import "redlockd/commands/access"

// Table answers commands. It is safe for concurrent use and never changes
// after NewTable.
type Table struct {
	*index
	users    *access.Users
	requests *Requests
	holds    holdWatch
}

// Rows makes the commands of one package from what they use.
type Rows func(Deps) []*Command

// NewTable builds the commands of one daemon from those of the packages, in the order
// of the documentation.
func NewTable(deps Deps, groups ...Rows) *Table {
	deps = deps.withDefaults()
	t := &Table{index: deps.commands, users: deps.Users, requests: deps.Requests, holds: newHoldWatch(deps.Logger)}
	for _, rows := range groups {
		for _, row := range rows(deps) {
			t.add(row)
		}
	}
	t.entries, t.documents, t.names = entriesOf(t.rows), documentsOf(t.rows), namesOf(t.rows)
	return t
}

// Authenticated reports whether the client may do more than authenticate. Until
// then it gets little memory.
func (t *Table) Authenticated(client *Client) bool { return authenticated(t.users, client) }

// Plan has what a connection considers before it starts a command.
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
	c.users = t.users
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
		if c.options = row.options; row.Category != access.CategoryRead {
			c.requests = t.requests
		}
		c.track(row)
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

var queued = Simple("QUEUED")

// queues takes a command of an open transaction; true means that the call has been
// answered.
func (c *Call) queues(row *Command) bool {
	x := &c.Client.Transaction
	switch row.Name {
	case "reset":
		x.End()
		return false
	case "multi", "exec", "discard", "watch", "quit":
		return false
	}
	if !x.open {
		return false
	}
	if x.takes(row.Name, c.Args) {
		x.queue = append(x.queue, c.Args)
		c.Reply(queued)
		return true
	}
	x.refused()
	c.Reply(row.refuse(ErrTransaction))
	return true
}
