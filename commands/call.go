// Call is one command on its way through a handler, and Completer takes its answer.

package commands

import (
	"sync"
	"time"

	"redlockd/commands/access"
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

// Later is a DeferredReply of which nothing is undone if it is not delivered.
type Later func() Reply

func (l Later) Reply() Reply { return l() }
func (Later) Undelivered()   {}

// Call is one command on its way through a handler: a promise of exactly one
// answer through Completer, kept now or later.
type Call struct {
	Args      []string // Args[0] is the command's word as it was sent; binary safe
	Client    *Client
	Batch     *redlock.Batch // operations of one read batch leave together
	Completer Completer

	users    *access.Users
	options  []arg.Spec // of the row that serves it
	requests *Requests  // count how it ends; nil = it only reads
}

// Words reads the arguments behind the command's word, with the options of its row.
func (c *Call) Words() arg.Words { return arg.Read(c.Args, c.options) }

// Reply answers the call. It returns nil, so that a handler can end with it.
func (c *Call) Reply(r Reply) error {
	c.requests.note(&r)
	c.Completer.Complete(r)
	return nil
}

// Answer is the completion of an operation: it replies with the failure, or with what
// show makes of the value.
func Answer[T any](c *Call, show func(T) Reply) func(T, error) {
	return func(value T, err error) {
		if err != nil {
			c.Reply(Failure(err))
		} else {
			c.Reply(show(value))
		}
	}
}

// AnswerValidity is the completion of an extension: it replies with what is left when the reply
// is written, after note has noted that, or that it is too late: fate is what may have become of
// the lease. Nothing is undone if the reply is not delivered: the lease ran before, and its
// holder may still be there on another connection.
func AnswerValidity[L any, E error, P interface {
	*L
	Validity() time.Duration
	ExpiredError() E
}](c *Call, fate string, note func(P, time.Duration)) func(L, error) {
	return func(lease L, err error) {
		if err != nil {
			c.Reply(Failure(err))
			return
		}
		c.Completer.CompleteDeferred(Later(func() Reply {
			validity := P(&lease).Validity()
			if validity < time.Millisecond {
				late := TooLate(P(&lease).ExpiredError(), fate)
				c.requests.note(&late)
				return late
			}
			note(&lease, validity)
			return Int(validity.Milliseconds())
		}))
	}
}

// Gather returns the completions of n operations of one command, by their index. done is
// called after the last, with the values and errors in the order of the operations.
func Gather[T any](n int, done func(values []T, errs []error)) func(i int) func(T, error) {
	var mu sync.Mutex
	values, errs, open := make([]T, n), make([]error, n), n
	return func(i int) func(T, error) {
		return func(value T, err error) {
			mu.Lock()
			values[i], errs[i] = value, err
			open--
			last := open == 0
			mu.Unlock()
			if last {
				done(values, errs)
			}
		}
	}
}
