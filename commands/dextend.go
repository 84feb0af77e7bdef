// DEXTEND key token ttl: makes a held lock last at least ttl from now.

package commands

import (
	"time"

	"redlockd/commands/access"
	"redlockd/redlock"
)

// dextend answers the new validity in milliseconds, or nil if the token does
// not hold the lock any more.
func (t *Table) dextend(c *Call) error {
	request, err := t.extendRequest(c)
	if err != nil {
		return err
	}
	answer := &extendAnswer{completer: c.Completer, lastAcquired: &c.Client.LastAcquired, users: t.deps.Users, request: request}
	t.deps.Locks.Extend(c.Batch, request, answer.decided)
	return nil
}

func (t *Table) extendRequest(c *Call) (redlock.ExtendRequest, error) {
	request := redlock.ExtendRequest{DB: c.Client.DB}
	words := c.Words()
	var err error
	if request.Key, err = parseKey(words.next()); err != nil {
		return request, err
	}
	if request.Token, err = parseToken(words.next()); err != nil {
		return request, err
	}
	request.TTL, err = parseTTL(words.next(), t.deps.MaxTTL)
	return request, err
}

// extendAnswer is the reply of one DEXTEND.
type extendAnswer struct {
	completer    Completer
	lastAcquired *LastAcquired
	users        *access.Users
	request      redlock.ExtendRequest
	grant        redlock.Grant
}

// decided takes the outcome from the masters.
func (a *extendAnswer) decided(grant redlock.Grant, err error) {
	if err != nil {
		a.completer.Complete(failure(err))
		return
	}
	a.grant = grant
	a.completer.CompleteDeferred(a)
}

// Reply reports what is left when it is written.
func (a *extendAnswer) Reply() Reply {
	validity := a.grant.Validity()
	if validity < time.Millisecond {
		return tooLate(a.grant.ExpiredError(), "the lock may be lost")
	}
	a.lastAcquired.Prolong(a.request.DB, a.request.Key, a.request.Token, validity)
	a.users.ProlongedKey(a.request.DB, a.request.Key, a.request.Token, validity)
	return Int(validity.Milliseconds())
}

// Undelivered does nothing: the lock was held before, and the client with its token
// may still be there on another connection.
func (a *extendAnswer) Undelivered() {}
