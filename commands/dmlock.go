// DMLOCK ttl numkeys key [key …] [SHARED] [FAIR] [WAIT ms] [TOKEN token] [META text]
// [HOLD [max-ms]]: takes several keys, all or none.

package commands

import (
	"time"

	"redlockd/commands/access"
	"redlockd/redlock"
)

// dmlock answers [token, validity, fence], or nil if another token holds one of
// the keys.
func (t *Table) dmlock(c *Call) error {
	request, err := t.multiLockRequest(c)
	if err != nil {
		return err
	}
	keys := append([]redlock.Key{request.Key}, request.More...)
	if !c.MayUseAll(keys...) {
		return nil
	}
	answer := &multiLockAnswer{
		locks: t.deps.Locks, completer: c.Completer, lastAcquired: &c.Client.LastAcquired, users: t.deps.Users, request: request, keys: keys,
	}
	for _, key := range keys {
		slot, err := t.deps.Users.Reserve(c.Rights(), access.QuotaKeyOf(&request, key, request.Token))
		if err != nil {
			answer.freeSlots()
			c.Reply(Error("TRYLATER", err.Error()))
			return nil
		}
		answer.slots = append(answer.slots, slot)
	}
	t.acquire(c, request, answer.decided)
	return nil
}

func (t *Table) multiLockRequest(c *Call) (redlock.LockRequest, error) {
	request := redlock.LockRequest{DB: c.Client.DB}
	words := c.Words()
	var err error
	if request.TTL, err = parseTTL(words.next(), t.deps.MaxTTL); err != nil {
		return request, err
	}
	keys, err := parseKeys(&words)
	if err != nil {
		return request, err
	}
	request.Key, request.More = keys[0], keys[1:]
	for words.more() {
		if err := t.lockOption(&words, &request); err != nil {
			return request, err
		}
	}
	return request, nil
}

// multiLockAnswer is the reply of one DMLOCK, as lockAnswer is of a DLOCK.
type multiLockAnswer struct {
	locks        Locks
	completer    Completer
	lastAcquired *LastAcquired
	users        *access.Users
	request      redlock.LockRequest
	keys         []redlock.Key
	slots        []access.Slot // in the user's quota, one for each key

	grant     redlock.Grant
	givenBack bool
}

// decided takes the outcome from the masters.
func (a *multiLockAnswer) decided(grant redlock.Grant, err error) {
	if err != nil {
		a.freeSlots()
		a.completer.Complete(failure(err))
		return
	}
	for i, key := range a.keys {
		a.slots[i].Fill(access.QuotaKeyOf(&a.request, key, grant.Token), grant.Token, lasting(&grant))
	}
	a.grant = grant
	a.completer.CompleteDeferred(a)
}

func (a *multiLockAnswer) freeSlots() {
	for _, slot := range a.slots {
		slot.Free()
	}
}

// Reply reports what is left of the lease at the moment it is written.
func (a *multiLockAnswer) Reply() Reply {
	validity := a.grant.Validity()
	if validity < time.Millisecond {
		a.giveBack()
		if a.grant.Fresh {
			return tooLate(a.grant.ExpiredError(), "the locks are given back")
		}
		return tooLate(a.grant.ExpiredError(), "the locks that this token already held are left as they are")
	}
	for _, key := range a.keys {
		a.lastAcquired.Remember(a.request.DB, key, a.grant.Token, lasting(&a.grant))
	}
	return Array(
		Bulk(string(a.grant.Token)),
		Int(validity.Milliseconds()),
		Int(int64(a.grant.Fence)),
	)
}

// Undelivered: the client has gone without reading that it holds the locks.
func (a *multiLockAnswer) Undelivered() { a.giveBack() }

// giveBack undoes the grant once, unless some of it existed before.
func (a *multiLockAnswer) giveBack() {
	if !a.grant.Fresh || a.givenBack {
		return
	}
	a.givenBack = true
	for _, key := range a.keys {
		a.users.ReleasedKey(a.request.DB, key, a.grant.Token)
	}
	a.locks.GiveBack(a.grant)
}
