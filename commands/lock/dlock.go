// DLOCK key ttl [SHARED | LIMIT n] [FAIR] [WAIT ms] [TOKEN token] [META text]
// [HOLD [max-ms]]: takes a lock.

package lock

import (
	"errors"
	"time"

	"redlockd/commands"
	"redlockd/commands/access"
	"redlockd/commands/arg"
	"redlockd/redlock"
)

// maxPermits is the largest number of holders of one key.
const maxPermits = 1024

// dlock answers [token, validity, fence], or nil if another token holds the key.
func (h *handlers) dlock(c *commands.Call) error {
	request, err := h.lockRequest(c)
	if err != nil {
		return err
	}
	slot, err := h.deps.Users.Reserve(c.Rights(), access.QuotaKeyOf(&request, request.Key, request.Token))
	if err != nil {
		c.Reply(commands.Error("TRYLATER", err.Error()))
		return nil
	}
	answer := &lockAnswer{
		locks: h.deps.Locks, completer: c.Completer, lastAcquired: &c.Client.LastAcquired, users: h.deps.Users, slot: slot,
		db: request.DB, key: request.Key, mode: request.Mode,
	}
	h.acquire(c, request, answer.decided)
	return nil
}

func (h *handlers) lockRequest(c *commands.Call) (redlock.LockRequest, error) {
	request := redlock.LockRequest{DB: c.Client.DB}
	words := c.Words()
	var err error
	if request.Key, err = arg.ParseKey(words.Next()); err != nil {
		return request, err
	}
	if request.TTL, err = arg.ParseTTL(words.Next(), h.deps.MaxTTL); err != nil {
		return request, err
	}
	for words.More() {
		if err := h.lockOption(&words, &request); err != nil {
			return request, err
		}
	}
	return request, nil
}

// lockOption reads one option and its value into the request.
func (h *handlers) lockOption(words *arg.Words, request *redlock.LockRequest) error {
	name, value, err := words.Option()
	if err != nil {
		return err
	}
	switch name {
	case "SHARED":
		return lockMode(request, redlock.Shared)
	case "LIMIT":
		limit, err := arg.Bounds{Min: 1, Max: maxPermits}.Parse(name, value)
		request.Limit = int(limit)
		return errors.Join(err, lockMode(request, redlock.Permits))
	case "TOKEN":
		request.Token, err = arg.ParseToken(value)
	case "META":
		request.Meta, err = arg.ParseMeta(value)
	case "FAIR":
		request.Fair = true
	case "WAIT":
		return h.waitOption(value, request)
	case "HOLD":
		return h.holdOption(words, request)
	}
	return err
}

// lockMode refuses modes that exclude each other.
func lockMode(request *redlock.LockRequest, mode redlock.Mode) error {
	if request.Mode != redlock.Exclusive {
		return errors.New("options SHARED and LIMIT contradict each other: a key has either readers or a number of permits")
	}
	request.Mode = mode
	return nil
}

// lockAnswer is the reply of one DLOCK from the request to the socket. The
// session calls Reply and Undelivered one after the other, never at the same time.
type lockAnswer struct {
	locks        commands.Locks
	completer    commands.Completer
	lastAcquired *commands.LastAcquired
	users        *access.Users
	slot         access.Slot // in the user's quota
	db           int
	key          redlock.Key
	mode         redlock.Mode

	grant     redlock.Grant
	givenBack bool
}

// decided takes the outcome from the masters.
func (a *lockAnswer) decided(grant redlock.Grant, err error) {
	if err != nil {
		a.slot.Free()
		a.completer.Complete(commands.Failure(err))
		return
	}
	a.slot.Fill(a.quotaKey(grant.Token), grant.Token, lasting(&grant))
	a.grant = grant
	a.completer.CompleteDeferred(a)
}

// Reply reports what is left of the lease at the moment it is written: replies
// wait for those before them, and a client counts from what it reads. It is a
// whole number of milliseconds above 0, or the lock is given back.
func (a *lockAnswer) Reply() commands.Reply {
	validity := a.grant.Validity()
	if validity < time.Millisecond {
		return a.usedUp()
	}
	a.lastAcquired.Remember(a.db, a.key, a.grant.Token, lasting(&a.grant))
	return commands.Array(
		commands.Bulk(string(a.grant.Token)),
		commands.Int(validity.Milliseconds()),
		commands.Int(int64(a.grant.Fence)),
	)
}

// usedUp answers for a lock that was granted but has no time left for the client.
func (a *lockAnswer) usedUp() commands.Reply {
	a.giveBack()
	if a.grant.Fresh {
		return commands.TooLate(a.grant.ExpiredError(), "the lock is given back")
	}
	return commands.TooLate(a.grant.ExpiredError(), "the lock that this token already held is left as it is")
}

// Undelivered: the client has gone without reading that it holds the lock.
func (a *lockAnswer) Undelivered() { a.giveBack() }

// giveBack undoes the grant once. It leaves a lease that existed before this DLOCK:
// its holder, or the client's next try, counts on it.
func (a *lockAnswer) giveBack() {
	if a.grant.Fresh && !a.givenBack {
		a.givenBack = true
		a.users.Released(a.quotaKey(a.grant.Token), a.grant.Token)
		a.locks.GiveBack(a.grant)
	}
}

func (a *lockAnswer) quotaKey(token redlock.Token) access.HeldKey {
	if a.mode == redlock.Exclusive {
		return access.HeldKey{DB: a.db, Key: a.key}
	}
	return access.SharedQuotaKey(a.db, a.key, token)
}
