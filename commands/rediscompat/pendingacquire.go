// pendingAcquire is an acquire with the reply of Redis or of a script: yes or no.
// It gives the lock back if the client cannot have read the yes.

package rediscompat

import (
	"errors"
	"fmt"
	"time"

	"redlockd/commands"
	"redlockd/commands/access"
	"redlockd/commands/dropin"
	"redlockd/redlock"
)

// pendingAcquire is one such acquire from the request to the socket.
type pendingAcquire struct {
	handlers  *handlers
	completer commands.Completer
	slots     []access.Slot // in the user's quota, one for each key
	keys      []access.HeldKey
	replyYes  func() commands.Reply
	replyNo   func() commands.Reply
	watch     dropin.Stopwatch

	grant     redlock.Grant
	givenBack bool

	oneSlot [1]access.Slot // behind the slices in the usual case of one key
	oneKey  [1]access.HeldKey
}

// startAcquire requests the lock.
func (h *handlers) startAcquire(c *commands.Call, request redlock.LockRequest, watch dropin.Stopwatch, yes, no func() commands.Reply) {
	a := &pendingAcquire{handlers: h, completer: c.Completer, replyYes: yes, replyNo: no, watch: watch}
	a.slots, a.keys = a.oneSlot[:0], a.oneKey[:0]
	who := c.Rights()
	for i := range 1 + len(request.More) {
		at := access.HeldKey{DB: request.DB, Key: request.Key}
		if i > 0 {
			at.Key = request.More[i-1]
		}
		slot, err := h.deps.Users.Reserve(who, at)
		if err != nil {
			a.freeSlots()
			c.Reply(commands.Error("TRYLATER", err.Error()))
			return
		}
		a.slots, a.keys = append(a.slots, slot), append(a.keys, at)
	}
	request.Requester = c.Client.Identity()
	h.deps.Locks.Lock(c.Batch, request, a.decided)
}

func (a *pendingAcquire) freeSlots() {
	for _, slot := range a.slots {
		slot.Free()
	}
}

// decided takes the outcome from the masters.
func (a *pendingAcquire) decided(grant redlock.Grant, err error) {
	held := errors.Is(err, redlock.ErrHeld)
	if held {
		a.watch.Stop(false, nil)
	} else {
		a.watch.Stop(true, err)
	}
	switch {
	case held:
		a.freeSlots()
		a.completer.Complete(a.replyNo())
	case err != nil:
		a.freeSlots()
		a.completer.Complete(commands.Failure(err))
	default:
		for i, slot := range a.slots {
			slot.Fill(a.keys[i], grant.TokenOf(i), grant.Validity())
		}
		a.grant = grant
		a.completer.CompleteDeferred(a)
	}
}

// Reply runs when the reply is written. The client counts its lease from here and
// does not learn how much is left. The copies outlast the lease by the master
// timeout, so a reply that is no later than that promises nothing false.
func (a *pendingAcquire) Reply() commands.Reply {
	fate := "the lock is given back"
	if !a.grant.Fresh {
		fate = "the lock that this value already held is left as it is"
	}
	if a.grant.Validity() < time.Millisecond {
		a.giveBack()
		return commands.TooLate(a.grant.ExpiredError(), fate)
	}
	if late, limit := a.grant.Elapsed(), a.handlers.deps.MasterTimeout; late > limit {
		a.giveBack()
		return commands.Error("EXPIRED", fmt.Sprintf("the reply could be written only after %d ms, and no copy outlasts its lease by more than %d ms (--master-timeout); %s, try again",
			late.Milliseconds(), limit.Milliseconds(), fate))
	}
	a.handlers.fences.note(&a.grant)
	return a.replyYes()
}

// Undelivered: the client has gone without reading that it holds the lock. It may
// retry with the same value, and would then find the lock held.
func (a *pendingAcquire) Undelivered() { a.giveBack() }

// giveBack undoes the grant once. It leaves what existed before the grant, and what
// has expired: another client may hold that with the same value by now.
func (a *pendingAcquire) giveBack() {
	if !a.grant.Fresh || a.givenBack || a.grant.Validity() <= 0 {
		return
	}
	a.givenBack = true
	for i, at := range a.keys {
		a.handlers.deps.Users.Released(at, a.grant.TokenOf(i))
	}
	a.handlers.deps.Locks.GiveBack(a.grant)
}

// Replies that are known beforehand.
func replyOK() commands.Reply   { return commands.OK }
func replyNil() commands.Reply  { return commands.Nil }
func replyOne() commands.Reply  { return commands.Int(1) }
func replyZero() commands.Reply { return commands.Int(0) }
