// command is one row of the table: what is known of one command.

package commands

import (
	"fmt"
	"strings"

	"redlockd/commands/access"
)

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

	full    string     // "client|setname"; filled by the table
	syntax  string     // "CLIENT SETNAME name"; filled by the table
	options []argument // of args; filled by the table
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

// connection is a row that every client may send at any time.
func connection(name string, arity arity, summary string, handle handler, args ...argument) *command {
	return &command{
		name: name, arity: arity, category: access.CategoryConnection, since: firstVersion, redis: true,
		summary: summary, flags: []string{"loading", "stale", "fast"}, args: args, handle: handle,
	}
}

// withoutAuth makes a row serve unauthenticated clients.
func withoutAuth(c *command) *command {
	c.noAuth = true
	return c
}

// whileSubscribed makes a row serve subscribers on RESP2.
func whileSubscribed(c *command) *command {
	c.allowedWhileSubscribed = true
	return c
}

// forAdmins gives a row of Redis the category admin.
func forAdmins(c *command) *command { return ofCategory(access.CategoryAdmin, c) }

// ofCategory gives a row of Redis another category.
func ofCategory(category string, c *command) *command {
	c.category = category
	return c
}

// barrier makes every call of a row run alone on its connection; barrierWhen
// does so for the calls that alone selects.
func barrier(c *command) *command { return barrierWhen(always, c) }

func barrierWhen(alone func(args []string) bool, c *command) *command {
	c.barrier = alone
	return c
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
