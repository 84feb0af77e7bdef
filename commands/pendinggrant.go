// PendingGrant is the acquire of one or several locks, from the request to the socket.

package commands

import (
	"errors"
	"time"

	"redlockd/commands/access"
	"redlockd/redlock"
)

// PendingGrant reserves locks in the quota of a client's user, and gives them back if
// the client cannot have read that it holds them. The session calls Reply and
// Undelivered one after the other, never at the same time.
type PendingGrant struct {
	Locks  Locks
	Answer GrantAnswer
	// Valued: clients choose the values of the locks, and another one may hold an
	// expired lock with the same value by now. An expired grant is left as it is.
	Valued bool

	DB      int
	Keys    []redlock.Key
	Granted redlock.Grant // the outcome

	call         *Call
	mode         redlock.Kind
	reservations []access.Reservation // in the user's quota, one for each key
	givenBack    bool

	oneKey         [1]redlock.Key // behind the slices in the usual case of one key
	oneReservation [1]access.Reservation
}

// GrantAnswer forms the reply to the client of a PendingGrant.
type GrantAnswer interface {
	// ReplyTo replies to a grant that is valid for that long.
	ReplyTo(validity time.Duration) Reply
	// Fate is what becomes of a grant that the client cannot use: it is given back
	// if it is fresh, else it stays as it was.
	Fate(fresh bool) string
}

// Reserve reserves the locks of the request, or replies why it does not.
func (p *PendingGrant) Reserve(c *Call, request *redlock.LockRequest) bool {
	p.call, p.DB, p.mode = c, request.DB, request.Kind()
	p.Keys, p.reservations = append(append(p.oneKey[:0], request.Key), request.More...), p.oneReservation[:0]
	who := c.Rights()
	for _, key := range p.Keys {
		reservation, err := c.users.ReserveKey(who, p.DB, p.mode, key, request.Token)
		if err != nil {
			p.Refuse(Error("TRYLATER", err.Error()), nil)
			return false
		}
		p.reservations = append(p.reservations, reservation)
	}
	return true
}

// Refuse replies that nothing was granted, for the reason err.
func (p *PendingGrant) Refuse(reply Reply, err error) {
	if errors.Is(err, redlock.ErrHeld) && p.call.requests != nil {
		p.call.requests.refused.Add(1)
	}
	for _, key := range p.Keys {
		switch held := errors.Is(err, redlock.ErrHeld); {
		case !held:
			p.call.Saw(key, redlock.Seen{}, err)
		case len(p.Keys) == 1: // of several keys, it is not known which one is held
			p.call.Saw(key, redlock.Seen{Refused: true}, nil)
		}
	}
	for _, reservation := range p.reservations {
		reservation.Free()
	}
	p.call.Reply(reply)
}

// Fail replies with an error. It names no key that the client may not use.
func (p *PendingGrant) Fail(err error) {
	if cycle, ok := errors.AsType[*redlock.Deadlock](err); ok {
		err = cycle.Only(func(key redlock.Key) bool { return p.call.MayUse(string(key)) })
	}
	p.Refuse(Failure(err), err)
}

// Grant takes a grant that counts in the quota for that long, or until its renewal ends.
func (p *PendingGrant) Grant(grant redlock.Grant, counts time.Duration, renewed bool) {
	p.Granted = grant
	for i, reservation := range p.reservations {
		reservation.FillKey(p.DB, p.mode, p.Keys[i], grant.TokenOf(i), counts, renewed)
		if p.mode == redlock.Exclusive {
			p.call.SawHeld(p.Keys[i], grant.TokenOf(i), grant.Left()) // Validity would read the clock with a system call
		}
	}
	p.call.Completer.CompleteDeferred(p)
}

// Reply reports what is left of the lease at the moment it is written: replies
// wait for those before them, and a client counts from what it reads. It is a
// whole number of milliseconds above 0, or the locks are given back.
func (p *PendingGrant) Reply() (r Reply) {
	if validity := p.Granted.Validity(); validity < time.Millisecond {
		p.GiveBack()
		r = TooLate(p.Granted.ExpiredError(), p.Answer.Fate(p.Granted.Fresh))
	} else {
		r = p.Answer.ReplyTo(validity)
	}
	p.call.requests.note(&r)
	return r
}

// Undelivered: the client has gone without reading that it holds the locks. It may
// retry with the same token, and would then find them held.
func (p *PendingGrant) Undelivered() { p.GiveBack() }

// GiveBack undoes the grant once. It leaves a lease that existed before the request:
// its holder, or the client's next try, counts on it.
func (p *PendingGrant) GiveBack() {
	if !p.Granted.Fresh || p.givenBack || p.Valued && p.Granted.Validity() <= 0 {
		return
	}
	p.givenBack = true
	for i := range p.Keys {
		p.call.users.Released(p.quotaKey(i), p.Granted.TokenOf(i))
	}
	p.Locks.GiveBack(p.Granted)
}

func (p *PendingGrant) quotaKey(i int) access.HeldKey {
	return access.QuotaKeyOf(p.DB, p.mode, p.Keys[i], p.Granted.TokenOf(i))
}
