// DMLOCK ttl numkeys key [key …] [SHARED] [FAIR] [WAIT ms] [TOKEN token] [META text]
// [HOLD [max-ms]]: takes several keys, all or none.

package lock

import (
	"time"

	"redlockd/commands"
	"redlockd/commands/access"
	"redlockd/commands/arg"
	"redlockd/redlock"
)

// dmlock answers [token, validity, fence], or nil if another token holds one of
// the keys.
func (h *handlers) dmlock(c *commands.Call) error {
	request, err := h.multiLockRequest(c)
	if err != nil {
		return err
	}
	keys := append([]redlock.Key{request.Key}, request.More...)
	if !c.MayUseAll(keys...) {
		return nil
	}
	answer := &multiLockAnswer{
		locks: h.deps.Locks, completer: c.Completer, lastAcquired: &c.Client.LastAcquired, users: h.deps.Users, request: request, keys: keys,
	}
	for _, key := range keys {
		slot, err := h.deps.Users.Reserve(c.Rights(), access.QuotaKeyOf(&request, key, request.Token))
		if err != nil {
			answer.freeSlots()
			c.Reply(commands.Error("TRYLATER", err.Error()))
			return nil
		}
		answer.slots = append(answer.slots, slot)
	}
	h.acquire(c, request, answer.decided)
	return nil
}

func (h *handlers) multiLockRequest(c *commands.Call) (redlock.LockRequest, error) {
	request := redlock.LockRequest{DB: c.Client.DB}
	words := c.Words()
	var err error
	if request.TTL, err = arg.ParseTTL(words.Next(), h.deps.MaxTTL); err != nil {
		return request, err
	}
	keys, err := arg.ParseKeys(&words)
	if err != nil {
		return request, err
	}
	request.Key, request.More = keys[0], keys[1:]
	for words.More() {
		if err := h.lockOption(&words, &request); err != nil {
			return request, err
		}
	}
	return request, nil
}

// multiLockAnswer is the reply of one DMLOCK, as lockAnswer is of a DLOCK.
type multiLockAnswer struct {
	locks        commands.Locks
	completer    commands.Completer
	lastAcquired *commands.LastAcquired
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
		a.completer.Complete(commands.Failure(err))
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
func (a *multiLockAnswer) Reply() commands.Reply {
	validity := a.grant.Validity()
	if validity < time.Millisecond {
		a.giveBack()
		if a.grant.Fresh {
			return commands.TooLate(a.grant.ExpiredError(), "the locks are given back")
		}
		return commands.TooLate(a.grant.ExpiredError(), "the locks that this token already held are left as they are")
	}
	for _, key := range a.keys {
		a.lastAcquired.Remember(a.request.DB, key, a.grant.Token, lasting(&a.grant))
	}
	return commands.Array(
		commands.Bulk(string(a.grant.Token)),
		commands.Int(validity.Milliseconds()),
		commands.Int(int64(a.grant.Fence)),
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
