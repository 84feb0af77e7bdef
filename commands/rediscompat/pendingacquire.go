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

type pendingAcquire struct {
	commands.PendingGrant
	timeout time.Duration // by which copies outlast their lease
	fences  *fences
	yes, no func() commands.Reply
	watch   dropin.Stopwatch
}

// Replies that are known beforehand.
func replyOK() commands.Reply   { return commands.OK }
func replyNil() commands.Reply  { return commands.Nil }
func replyOne() commands.Reply  { return commands.Int(1) }
func replyZero() commands.Reply { return commands.Int(0) }

// reserve is Reserve for a lease that the client may hold so long; it replies why not.
func (a *pendingAcquire) reserve(h *handlers, c *commands.Call, request *redlock.LockRequest) bool {
	longest := h.deps.Longest(c, 0)
	if err := h.withinHold(request, longest); err != nil {
		c.Reply(commands.Error("ERR", err.Error()))
		return false
	}
	request.Mode = redlock.HeldFor(request.Mode, longest)
	return a.Reserve(c, request)
}

func (a *pendingAcquire) decided(grant redlock.Grant, err error) {
	if errors.Is(err, redlock.ErrHeld) {
		a.watch.Stop(false, nil)
		a.Refuse(a.no(), err)
		return
	}
	a.watch.Stop(true, err)
	if err != nil {
		a.Fail(err)
		return
	}
	a.Grant(grant, grant.Validity(), false)
}

// ReplyTo runs when the reply is written. The client counts its lease from here and
// does not learn how much is left. The copies outlast the lease by the master
// timeout, so a reply that is no later than that promises nothing false.
func (a *pendingAcquire) ReplyTo(time.Duration) commands.Reply {
	if late, limit := a.Granted.Elapsed(), a.timeout; late > limit {
		a.GiveBack()
		return commands.Error("EXPIRED", fmt.Sprintf("the reply could be written only after %d ms, and no copy outlasts its lease by more than %d ms (--master-timeout); %s, try again",
			late.Milliseconds(), limit.Milliseconds(), a.Fate(a.Granted.Fresh)))
	}
	a.fences.note(&a.Granted)
	return a.yes()
}

// Fate names what becomes of a lock that is granted too late.
func (a *pendingAcquire) Fate(fresh bool) string {
	if fresh {
		return "the lock is given back"
	}
	return "the lock that this value already held is left as it is"
}
