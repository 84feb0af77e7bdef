// DMEXTEND token ttl numkeys key [key …]: makes several held locks last at least
// ttl from now.

package commands

import (
	"time"

	"redlockd/redlock"
)

// dmextend answers the new validity in milliseconds, or nil unless the token
// holds every one of the keys.
func (t *Table) dmextend(c *Call) error {
	request := redlock.ExtendRequest{DB: c.Client.DB}
	words := argumentsOf(c)
	var err error
	if request.Token, err = parseToken(words.next()); err != nil {
		return err
	}
	if request.TTL, err = parseTTL(words.next(), t.env.MaxTTL); err != nil {
		return err
	}
	keys, err := parseKeys(&words)
	if err != nil {
		return err
	}
	if err := noMore(&words); err != nil {
		return err
	}
	if !t.mayUseAll(c, keys) {
		return nil
	}
	request.Key, request.More = keys[0], keys[1:]
	answer := &multiExtendAnswer{sink: c.Sink, held: &c.Client.Held, users: t.env.Users, request: request, keys: keys}
	t.env.Locks.Extend(c.Batch, request, answer.decided)
	return nil
}

// multiExtendAnswer is the reply of one DMEXTEND.
type multiExtendAnswer struct {
	sink    Sink
	held    *Held
	users   *Users
	request redlock.ExtendRequest
	keys    []redlock.Key
	grant   redlock.Grant
}

// decided takes the outcome from the masters.
func (a *multiExtendAnswer) decided(grant redlock.Grant, err error) {
	if err != nil {
		a.sink.Deliver(failure(err))
		return
	}
	a.grant = grant
	a.sink.DeliverLate(a)
}

// Reply reports what is left when it is written.
func (a *multiExtendAnswer) Reply() Reply {
	validity := a.grant.Validity()
	if validity < time.Millisecond {
		return tooLate(a.grant.Spent(), "the locks may be lost")
	}
	for _, key := range a.keys {
		a.held.Prolong(a.request.DB, key, a.request.Token, validity)
		a.users.lasts(a.request.DB, key, a.request.Token, validity)
	}
	return Int(validity.Milliseconds())
}

// Undelivered does nothing: the locks were held before.
func (a *multiExtendAnswer) Lost() {}
