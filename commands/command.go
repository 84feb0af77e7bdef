// command is one row of the table: what is known of one command.

package commands

// firstVersion is the release in which a command appeared.
const firstVersion = "0.1.0"

// handler answers one call now or arranges for its answer. An error is the
// caller's mistake and becomes the call's only answer: a handler that returns one
// has not replied and never will.
type handler func(*Call) error

// command is one row of the table. Dispatch, arity errors, COMMAND, the help
// texts and the README table are all generated from rows: each fact stands once.
type command struct {
	name                   string // lower case; of a subcommand only its own word
	arity                  arity
	category               string
	also                   string // a category that a user needs as well; shown here, checked by the handler
	since                  string
	summary                string     // one sentence for people
	flags                  []string   // as COMMAND INFO names them
	args                   []argument // after the name, in order
	handle                 handler
	barrier                func(args []string) bool // nil: runs concurrently with its neighbours
	redis                  bool                     // Redis has it, too: the texts are those of Redis
	noAuth                 bool                     // also from unauthenticated clients
	allowedWhileSubscribed bool                     // also from subscribers on RESP2
	parts                  []*command               // subcommands; handle answers for the bare word

	full   string // "client|setname"; filled by the table
	syntax string // "CLIENT SETNAME name"; filled by the table
}

// arity bounds the number of words of a call, the command's own included.
type arity struct{ min, max int }

const noLimit = int(^uint(0) >> 1)

func exactly(n int) arity           { return arity{n, n} }
func atLeast(n int) arity           { return arity{n, noLimit} }
func between(least, most int) arity { return arity{least, most} }

func (a arity) fits(n int) bool { return a.min <= n && n <= a.max }

// redis is the arity as COMMAND INFO writes it: the exact number of words, or
// minus the least number.
func (a arity) redis() int64 {
	if a.min == a.max {
		return int64(a.min)
	}
	return -int64(a.min)
}

// always is the barrier of commands that change what later ones mean.
func always([]string) bool { return true }

// named reports whether the first argument, if there is one, names a lock, a
// counter or a piece of work.
func (c *command) named() bool { return len(c.args) > 0 && c.args[0].kind == kindKey }

// keyed reports whether every call of the command names one.
func (c *command) keyed() bool { return c.named() && !c.args[0].optional }

// wrongArity is the caller's mistake of too few or too many words.
func (c *command) wrongArity() error {
	return redisText("wrong number of arguments for '" + c.full + "' command")
}

// refuse turns a caller's mistake into the reply. For a command that only
// redlockd has, it adds the syntax. The others keep the exact texts of Redis,
// because client libraries match on them.
func (c *command) refuse(mistake error) Reply {
	text := mistake.Error()
	if !c.redis {
		text += "; syntax: " + c.syntax
	}
	return Error("ERR", text)
}
