// Acquires: at once or with a wait.

package lock

import (
	"errors"
	"slices"
	"time"

	"redlockd/commands"
	"redlockd/redlock"
)

type handlers struct{ deps commands.Deps }

// acquire requests the locks and replies [token, validity, fence].
func (h *handlers) acquire(c *commands.Call, request redlock.LockRequest) {
	if fair := h.deps.FairKeys; fair != nil {
		request.Fair = request.Fair || fair(request.Key) || slices.ContainsFunc(request.More, fair)
	}
	request.Mode = redlock.HeldFor(request.Mode, h.deps.Longest(c, redlock.Longest(request.Mode)))
	answer := &lockAnswer{client: c.Client, terms: request.Hold}
	answer.Locks, answer.Answer = h.deps.Locks, answer
	if answer.Reserve(c, &request) {
		h.send(c, request, answer.decided)
	}
}

// send sends a request to the masters; done is called exactly once.
func (h *handlers) send(c *commands.Call, request redlock.LockRequest, done redlock.LockDone) {
	client := c.Client
	request.Requester = client.Identity().WithMeta(request.Meta())
	if request.Hold != nil {
		done = bind(h.deps.Users, client, &request, done)
	}
	if request.Wait == 0 {
		h.deps.Locks.Lock(c.Batch, request, done)
		return
	}
	request.Owner = &client.LastAcquired
	client.OnClose.SetWait(h.deps.Locks.Wait(c.Batch, request, unlessExpelled(client, done)))
}

// unlessExpelled gives a wait that the daemon ended with its connection the reason.
func unlessExpelled(c *commands.Client, done redlock.LockDone) redlock.LockDone {
	return func(grant redlock.Grant, err error) {
		if errors.Is(err, redlock.ErrLeft) {
			if why := c.OnClose.Expelled(); why != nil {
				err = why
			}
		}
		done(grant, err)
	}
}

// lockAnswer is the reply of one DLOCK or DMLOCK.
type lockAnswer struct {
	commands.PendingGrant
	client *commands.Client
	terms  *redlock.HoldTerms // nil: it is not renewed
}

func (a *lockAnswer) decided(grant redlock.Grant, err error) {
	if err != nil {
		a.Fail(err)
		return
	}
	a.Grant(grant, a.lasting(&grant)+grant.Linger(), a.terms != nil)
}

// ReplyTo remembers the locks for DUNLOCK without a token.
func (a *lockAnswer) ReplyTo(validity time.Duration) commands.Reply {
	grant := &a.Granted
	for _, key := range a.Keys {
		a.client.LastAcquired.Remember(a.DB, key, grant.Token, a.lasting(grant))
	}
	return commands.Array(
		commands.Bulk(string(grant.Token)),
		commands.Int(validity.Milliseconds()),
		commands.Int(int64(grant.Fence)),
	)
}

// Fate names what becomes of a lock that is granted too late.
func (a *lockAnswer) Fate(fresh bool) string {
	several := len(a.Keys) > 1
	switch {
	case several && fresh:
		return "the locks are given back"
	case several:
		return "the locks that this token already held are left as they are"
	case fresh:
		return "the lock is given back"
	}
	return "the lock that this token already held is left as it is"
}

// lasting returns the time for which a grant counts; a lock that is renewed counts until its
// renewal ends.
func (a *lockAnswer) lasting(grant *redlock.Grant) time.Duration {
	switch {
	case a.terms == nil:
		return grant.Left()
	case a.terms.MaxTime == 0:
		return commands.Endless
	}
	return commands.Unbounded
}
