// pendingAcquire is an acquire with the reply of Redis or of a script: yes or no.
// It gives the lock back if the client cannot have read the yes.

package rediscompat

import (
	"errors"
	"fmt"
	"time"

	"redlockd/commands"
	"redlockd/commands/dropin"
	"redlockd/redlock"
)

// pendingAcquire is one such acquire from the request to the socket.
type pendingAcquire struct {
	commands.PendingGrant
	handlers *handlers
	replyYes func() commands.Reply
	replyNo  func() commands.Reply
	watch    dropin.Stopwatch
}

// startAcquire requests the lock.
func (h *handlers) startAcquire(c *commands.Call, request redlock.LockRequest, watch dropin.Stopwatch, yes, no func() commands.Reply) {
	a := &pendingAcquire{handlers: h, replyYes: yes, replyNo: no, watch: watch}
	a.Locks, a.Answer, a.Valued = h.deps.Locks, a, true
	if !a.Reserve(c, &request) {
		return
	}
	request.Requester = c.Client.Identity()
	h.deps.Locks.Lock(c.Batch, request, a.decided)
}

// decided takes the outcome from the masters.
func (a *pendingAcquire) decided(grant redlock.Grant, err error) {
	switch {
	case errors.Is(err, redlock.ErrHeld):
		a.watch.Stop(false, nil)
		a.Refuse(a.replyNo())
	case err != nil:
		a.watch.Stop(true, err)
		a.Refuse(commands.Failure(err))
	default:
		a.watch.Stop(true, nil)
		a.Grant(grant, grant.Validity())
	}
}

// Granted runs when the reply is written. The client counts its lease from here and
// does not learn how much is left. The copies outlast the lease by the master
// timeout, so a reply that is no later than that promises nothing false.
func (a *pendingAcquire) Granted(time.Duration) commands.Reply {
	grant := a.Outcome()
	if late, limit := grant.Elapsed(), a.handlers.deps.MasterTimeout; late > limit {
		a.GiveBack()
		return commands.Error("EXPIRED", fmt.Sprintf("the reply could be written only after %d ms, and no copy outlasts its lease by more than %d ms (--master-timeout); %s, try again",
			late.Milliseconds(), limit.Milliseconds(), a.Fate(grant.Fresh)))
	}
	a.handlers.fences.note(grant)
	return a.replyYes()
}

// Fate names what becomes of a lock that is granted too late.
func (a *pendingAcquire) Fate(fresh bool) string {
	if fresh {
		return "the lock is given back"
	}
	return "the lock that this value already held is left as it is"
}

// Replies that are known beforehand.
func replyOK() commands.Reply   { return commands.OK }
func replyNil() commands.Reply  { return commands.Nil }
func replyOne() commands.Reply  { return commands.Int(1) }
func replyZero() commands.Reply { return commands.Int(0) }
