// Command is one row of the table: what is known of one command.

package commands

import (
	"redlockd/commands/access"
	"redlockd/commands/arg"
)

// firstVersion is the release in which a command appeared whose row has no Since.
const firstVersion = "0.1.0"

// Handler answers one call now or arranges for its answer. An error is the
// caller's mistake and becomes the call's only answer: a handler that returns one
// has not replied and never will.
type Handler func(*Call) error

// Command is one row of the table. Dispatch, arity errors, COMMAND, the help
// texts and the README table are all generated from rows: each fact stands once.
type Command struct {
	Name                   string // lower case; of a subcommand only its own word
	Arity                  Arity
	Category               string
	Also                   string // a category that a user needs as well; shown here, checked by the handler
	Since                  string
	Summary                string     // one sentence for people
	Tried                  []string   // lower-case names that are tried for it; their errors propose it
	Flags                  []string   // as COMMAND INFO names them
	Args                   []arg.Spec // after the name, in order
	Handle                 Handler
	Barrier                func(args []string) bool // nil: runs concurrently with its neighbours
	Further                int                      // how many further commands on one key are as much work
	Redis                  bool                     // Redis has it, too: the texts are those of Redis
	noAuth                 bool                     // also from unauthenticated clients
	allowedWhileSubscribed bool                     // also from subscribers on RESP2
	Parts                  []*Command               // subcommands; handle answers for the bare word

	// Filled by the table:
	Full            string // "client|setname"
	Syntax          string // "CLIENT SETNAME name"
	options         []arg.Spec
	byName          map[string]*Command // subcommands
	entry, document Reply               // of COMMAND INFO and COMMAND DOCS
}

// Arity bounds the number of words of a call, the command's own included.
type Arity struct{ Min, Max int }

const NoLimit = int(^uint(0) >> 1)

func Exactly(n int) Arity           { return Arity{n, n} }
func AtLeast(n int) Arity           { return Arity{n, NoLimit} }
func Between(least, most int) Arity { return Arity{least, most} }

func (a Arity) Fits(n int) bool { return a.Min <= n && n <= a.Max }

// redis is the arity as COMMAND INFO writes it: the exact number of words, or
// minus the least number.
func (a Arity) redis() int64 {
	if a.Min == a.Max {
		return int64(a.Min)
	}
	return -int64(a.Min)
}

// always is the barrier of commands that change what later ones mean.
func always([]string) bool { return true }

// Named reports whether the first argument, if there is one, is the name of a lock, a
// counter or a piece of work.
func (c *Command) Named() bool {
	return len(c.Args) > 0 && c.Args[0].Kind == arg.KindKey && !c.Args[0].Within
}

// wrongArity is the caller's mistake of too few or too many words.
func (c *Command) wrongArity() error {
	return RedisText("wrong number of arguments for '" + c.Full + "' command")
}

// refuse turns a caller's mistake into the reply. For a command that only
// redlockd has, it adds the syntax. The others keep the exact texts of Redis,
// because client libraries match on them.
func (c *Command) refuse(mistake error) Reply {
	text := mistake.Error()
	if !c.Redis {
		text += "; syntax: " + c.Syntax
	}
	return Error("ERR", text)
}

// Connection is a row that every client may send at any time.
func Connection(name string, arity Arity, summary string, handle Handler, args ...arg.Spec) *Command {
	return &Command{
		Name: name, Arity: arity, Category: access.CategoryConnection, Redis: true,
		Summary: summary, Flags: []string{"loading", "stale", "fast"}, Args: args, Handle: handle,
	}
}

// WithoutAuth makes a row serve unauthenticated clients.
func WithoutAuth(c *Command) *Command {
	c.noAuth = true
	return c
}

// WhileSubscribed makes a row serve subscribers on RESP2.
func WhileSubscribed(c *Command) *Command {
	c.allowedWhileSubscribed = true
	return c
}

// OfCategory gives a row of Redis another category.
func OfCategory(category string, c *Command) *Command {
	c.Category = category
	return c
}

// Barrier makes every call of a row run alone on its connection; BarrierWhen
// does so for the calls that alone selects.
func Barrier(c *Command) *Command { return BarrierWhen(always, c) }

func BarrierWhen(alone func(args []string) bool, c *Command) *Command {
	c.Barrier = alone
	return c
}

func Always(reply Reply) Handler {
	return func(c *Call) error { return c.Reply(reply) }
}
