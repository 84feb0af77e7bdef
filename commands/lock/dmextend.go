// DMEXTEND token ttl numkeys key [key …]: makes several held locks last at least
// ttl from now.

package lock

import (
	"time"

	"redlockd/commands"
	"redlockd/commands/access"
	"redlockd/commands/arg"
	"redlockd/redlock"
)

// dmextend answers the new validity in milliseconds, or nil unless the token
// holds every one of the keys.
func (h *handlers) dmextend(c *commands.Call) error {
	request := redlock.ExtendRequest{DB: c.Client.DB}
	words := c.Words()
	var err error
	if request.Token, err = arg.ParseToken(words.Next()); err != nil {
		return err
	}
	if request.TTL, err = arg.ParseTTL(words.Next(), h.deps.MaxTTL); err != nil {
		return err
	}
	keys, err := arg.ParseKeys(&words)
	if err != nil {
		return err
	}
	if err := arg.NoMore(&words); err != nil {
		return err
	}
	if !c.MayUseAll(keys...) {
		return nil
	}
	request.Key, request.More = keys[0], keys[1:]
	answer := &multiExtendAnswer{completer: c.Completer, lastAcquired: &c.Client.LastAcquired, users: h.deps.Users, request: request, keys: keys}
	h.deps.Locks.Extend(c.Batch, request, answer.decided)
	return nil
}

// multiExtendAnswer is the reply of one DMEXTEND.
type multiExtendAnswer struct {
	completer    commands.Completer
	lastAcquired *commands.LastAcquired
	users        *access.Users
	request      redlock.ExtendRequest
	keys         []redlock.Key
	grant        redlock.Grant
}

// decided takes the outcome from the masters.
func (a *multiExtendAnswer) decided(grant redlock.Grant, err error) {
	if err != nil {
		a.completer.Complete(commands.Failure(err))
		return
	}
	a.grant = grant
	a.completer.CompleteDeferred(a)
}

// Reply reports what is left when it is written.
func (a *multiExtendAnswer) Reply() commands.Reply {
	validity := a.grant.Validity()
	if validity < time.Millisecond {
		return commands.TooLate(a.grant.ExpiredError(), "the locks may be lost")
	}
	for _, key := range a.keys {
		a.lastAcquired.Prolong(a.request.DB, key, a.request.Token, validity)
		a.users.ProlongedKey(a.request.DB, key, a.request.Token, validity)
	}
	return commands.Int(validity.Milliseconds())
}

// Undelivered does nothing: the locks were held before.
func (a *multiExtendAnswer) Undelivered() {}
