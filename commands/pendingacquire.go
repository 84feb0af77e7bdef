// pendingAcquire is an acquire with the reply of Redis or of a script: yes or no.
// It gives the lock back if the client cannot have read the yes.

package commands

import (
	"errors"
	"fmt"
	"time"

	"redlockd/redlock"
)

// pendingAcquire is one such acquire from the request to the socket.
type taking struct {
	table *Table
	sink  Sink
	rooms []place // in the user's quota, one for each key
	keys  []heldKey
	yes   func() Reply
	no    func() Reply
	watch stopwatch

	grant     redlock.Grant
	givenBack bool

	room [1]place // behind the slices in the usual case of one key
	key  [1]heldKey
}

// startAcquire requests the lock.
func (t *Table) take(c *Call, request redlock.LockRequest, watch stopwatch, yes, no func() Reply) {
	a := &taking{table: t, sink: c.Sink, yes: yes, no: no, watch: watch}
	a.rooms, a.keys = a.room[:0], a.key[:0]
	who := t.user(c.Client)
	for i := range 1 + len(request.More) {
		at := heldKey{request.DB, request.Key}
		if i > 0 {
			at.key = request.More[i-1]
		}
		slot, err := t.env.Users.take(who, at)
		if err != nil {
			a.free()
			c.Reply(Error("TRYLATER", err.Error()))
			return
		}
		a.rooms, a.keys = append(a.rooms, slot), append(a.keys, at)
	}
	request.Who = c.Client.who()
	t.env.Locks.Lock(c.Batch, request, a.decided)
}

func (a *taking) free() {
	for _, slot := range a.rooms {
		slot.free()
	}
}

// decided takes the outcome from the masters.
func (a *taking) decided(grant redlock.Grant, err error) {
	held := errors.Is(err, redlock.ErrHeld)
	if held {
		a.watch.stop(false, nil)
	} else {
		a.watch.stop(true, err)
	}
	switch {
	case held:
		a.free()
		a.sink.Deliver(a.no())
	case err != nil:
		a.free()
		a.sink.Deliver(failure(err))
	default:
		for i, slot := range a.rooms {
			slot.fillFor(a.keys[i], grant.TokenOf(i), grant.Validity())
		}
		a.grant = grant
		a.sink.DeliverLate(a)
	}
}

// Reply runs when the reply is written. The client counts its lease from here and
// does not learn how much is left. The copies outlast the lease by the master
// timeout, so a reply that is no later than that promises nothing false.
func (a *taking) Reply() Reply {
	fate := "the lock is given back"
	if !a.grant.Fresh {
		fate = "the lock that this value already held is left as it is"
	}
	if a.grant.Validity() < time.Millisecond {
		a.giveBack()
		return tooLate(a.grant.Spent(), fate)
	}
	if late, limit := a.grant.Elapsed(), a.table.env.MasterTimeout; late > limit {
		a.giveBack()
		return Error("EXPIRED", fmt.Sprintf("the reply could be written only after %d ms, and no copy outlasts its lease by more than %d ms (--master-timeout); %s, try again",
			late.Milliseconds(), limit.Milliseconds(), fate))
	}
	a.table.fences.note(&a.grant)
	return a.yes()
}

// Undelivered: the client has gone without reading that it holds the lock. It may
// retry with the same value, and would then find the lock held.
func (a *taking) Lost() { a.giveBack() }

// giveBack undoes the grant once. It leaves what existed before the grant, and what
// has expired: another client may hold that with the same value by now.
func (a *taking) giveBack() {
	if !a.grant.Fresh || a.givenBack || a.grant.Validity() <= 0 {
		return
	}
	a.givenBack = true
	for i, at := range a.keys {
		a.table.env.Users.released(at, a.grant.TokenOf(i))
	}
	a.table.env.Locks.GiveBack(a.grant)
}

// Replies that are known beforehand.
func saysOK() Reply   { return OK }
func saysNil() Reply  { return Nil }
func saysOne() Reply  { return Int(1) }
func saysZero() Reply { return Int(0) }
