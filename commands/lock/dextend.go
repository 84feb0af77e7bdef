// DEXTEND key token ttl: makes a held lock last at least ttl from now.

package lock

import (
	"time"

	"redlockd/commands"
	"redlockd/commands/access"
	"redlockd/commands/arg"
	"redlockd/redlock"
)

// dextend answers the new validity in milliseconds, or nil if the token does
// not hold the lock any more.
func (h *handlers) dextend(c *commands.Call) error {
	request, err := h.extendRequest(c)
	if err != nil {
		return err
	}
	answer := &extendAnswer{completer: c.Completer, lastAcquired: &c.Client.LastAcquired, users: h.deps.Users, request: request}
	h.deps.Locks.Extend(c.Batch, request, answer.decided)
	return nil
}

func (h *handlers) extendRequest(c *commands.Call) (redlock.ExtendRequest, error) {
	request := redlock.ExtendRequest{DB: c.Client.DB}
	words := c.Words()
	var err error
	if request.Key, err = arg.ParseKey(words.Next()); err != nil {
		return request, err
	}
	if request.Token, err = arg.ParseToken(words.Next()); err != nil {
		return request, err
	}
	request.TTL, err = arg.ParseTTL(words.Next(), h.deps.MaxTTL)
	return request, err
}

// extendAnswer is the reply of one DEXTEND.
type extendAnswer struct {
	completer    commands.Completer
	lastAcquired *commands.LastAcquired
	users        *access.Users
	request      redlock.ExtendRequest
	grant        redlock.Grant
}

// decided takes the outcome from the masters.
func (a *extendAnswer) decided(grant redlock.Grant, err error) {
	if err != nil {
		a.completer.Complete(commands.Failure(err))
		return
	}
	a.grant = grant
	a.completer.CompleteDeferred(a)
}

// Reply reports what is left when it is written.
func (a *extendAnswer) Reply() commands.Reply {
	validity := a.grant.Validity()
	if validity < time.Millisecond {
		return commands.TooLate(a.grant.ExpiredError(), "the lock may be lost")
	}
	a.lastAcquired.Prolong(a.request.DB, a.request.Key, a.request.Token, validity)
	a.users.ProlongedKey(a.request.DB, a.request.Key, a.request.Token, validity)
	return commands.Int(validity.Milliseconds())
}

// Undelivered does nothing: the lock was held before, and the client with its token
// may still be there on another connection.
func (a *extendAnswer) Undelivered() {}
