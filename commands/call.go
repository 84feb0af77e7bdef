// Call is one command on its way through a handler, and Completer takes its answer.

package commands

import (
	"redlockd/commands/arg"
	"redlockd/redlock"
)

// Completer takes the one answer of one command, now or later, from any goroutine.
type Completer interface {
	// Complete hands over a finished reply.
	Complete(Reply)
	// CompleteDeferred hands over an answer that is only computed when its turn on
	// the socket has come, because part of it is a remaining time.
	CompleteDeferred(DeferredReply)
}

// DeferredReply is an answer whose content depends on when it is written.
type DeferredReply interface {
	// Reply is called once, when the reply is the next to be encoded.
	Reply() Reply
	// Undelivered is called instead of, or after, Reply when the client is known to
	// be gone before the reply was handed to the kernel.
	Undelivered()
}

// Call is one command on its way through a handler: a promise of exactly one
// answer through Completer, kept now or later.
type Call struct {
	Args      []string // Args[0] is the command's word as it was sent; binary safe
	Client    *Client
	Batch     *redlock.Batch // operations of one read batch leave together
	Completer Completer

	table *Table   // that dispatched it
	row   *Command // that serves it
}

// Words reads the arguments behind the command's word, with the options of its row.
func (c *Call) Words() arg.Words { return arg.Read(c.Args, c.row.options) }

// Reply answers the call.
func (c *Call) Reply(r Reply) { c.Completer.Complete(r) }
