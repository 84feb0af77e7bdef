// PendingGrant is the acquire of one or several locks, from the request to the socket.

package commands

import (
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

	users     *access.Users
	completer Completer
	db        int
	mode      redlock.Mode
	keys      []redlock.Key
	slots     []access.Slot // in the user's quota, one for each key

	grant     redlock.Grant
	givenBack bool

	oneKey  [1]redlock.Key // behind the slices in the usual case of one key
	oneSlot [1]access.Slot
}

// GrantAnswer is what the client of a PendingGrant reads.
type GrantAnswer interface {
	// Granted replies to a grant that is valid for that long.
	Granted(validity time.Duration) Reply
	// Fate is what becomes of a grant that the client cannot use: it is given back
	// if it is fresh, else it stays as it was.
	Fate(fresh bool) string
}

// Reserve reserves the locks of the request, or replies why it does not.
func (p *PendingGrant) Reserve(c *Call, request *redlock.LockRequest) bool {
	p.users, p.completer, p.db, p.mode = c.table.users, c.Completer, request.DB, request.Mode
	p.keys, p.slots = append(append(p.oneKey[:0], request.Key), request.More...), p.oneSlot[:0]
	who := c.Rights()
	for _, key := range p.keys {
		slot, err := p.users.Reserve(who, access.QuotaKeyOf(p.db, p.mode, key, request.Token))
		if err != nil {
			p.Refuse(Error("TRYLATER", err.Error()))
			return false
		}
		p.slots = append(p.slots, slot)
	}
	return true
}

// Refuse replies that nothing was granted.
func (p *PendingGrant) Refuse(reply Reply) {
	for _, slot := range p.slots {
		slot.Free()
	}
	p.completer.Complete(reply)
}

// Grant takes a grant that counts in the quota for that long.
func (p *PendingGrant) Grant(grant redlock.Grant, counts time.Duration) {
	for i, slot := range p.slots {
		slot.Fill(p.quotaKey(i, &grant), grant.TokenOf(i), counts)
	}
	p.grant = grant
	p.completer.CompleteDeferred(p)
}

// Outcome is the grant.
func (p *PendingGrant) Outcome() *redlock.Grant { return &p.grant }

// DB is the database of the locks, and Keys are their keys.
func (p *PendingGrant) DB() int             { return p.db }
func (p *PendingGrant) Keys() []redlock.Key { return p.keys }

// Reply reports what is left of the lease at the moment it is written: replies
// wait for those before them, and a client counts from what it reads. It is a
// whole number of milliseconds above 0, or the locks are given back.
func (p *PendingGrant) Reply() Reply {
	validity := p.grant.Validity()
	if validity < time.Millisecond {
		p.GiveBack()
		return TooLate(p.grant.ExpiredError(), p.Answer.Fate(p.grant.Fresh))
	}
	return p.Answer.Granted(validity)
}

// Undelivered: the client has gone without reading that it holds the locks. It may
// retry with the same token, and would then find them held.
func (p *PendingGrant) Undelivered() { p.GiveBack() }

// GiveBack undoes the grant once. It leaves a lease that existed before the request:
// its holder, or the client's next try, counts on it.
func (p *PendingGrant) GiveBack() {
	if !p.grant.Fresh || p.givenBack || p.Valued && p.grant.Validity() <= 0 {
		return
	}
	p.givenBack = true
	for i := range p.keys {
		p.users.Released(p.quotaKey(i, &p.grant), p.grant.TokenOf(i))
	}
	p.Locks.GiveBack(p.grant)
}

func (p *PendingGrant) quotaKey(i int, grant *redlock.Grant) access.HeldKey {
	return access.QuotaKeyOf(p.db, p.mode, p.keys[i], grant.TokenOf(i))
}
