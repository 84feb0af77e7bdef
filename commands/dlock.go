// DLOCK key ttl [SHARED | LIMIT n] [FAIR] [WAIT ms] [TOKEN token] [META text]
// [HOLD [max-ms]]: takes a lock.

package commands

import (
	"errors"
	"time"

	"redlockd/redlock"
)

// lockOptions are the options of DLOCK, multiOptions those of DMLOCK.
var (
	lockOptions  = []string{"SHARED", "LIMIT", "TOKEN", "META", "FAIR", "WAIT", "HOLD"}
	multiOptions = []string{"SHARED", "TOKEN", "META", "FAIR", "WAIT", "HOLD"}
)

// maxPermits is the largest number of holders of one key.
const mostPermits = 1024

// dlock answers [token, validity, fence], or nil if another token holds the key.
func (t *Table) dlock(c *Call) error {
	request, err := t.lockRequest(c)
	if err != nil {
		return err
	}
	slot, err := t.env.Users.take(t.user(c.Client), roomOf(&request, request.Key, request.Token))
	if err != nil {
		c.Reply(Error("TRYLATER", err.Error()))
		return nil
	}
	answer := &lockAnswer{
		locks: t.env.Locks, sink: c.Sink, held: &c.Client.Held, users: t.env.Users, room: slot,
		db: request.DB, key: request.Key, mode: request.Mode,
	}
	t.acquire(c, request, answer.decided)
	return nil
}

func (t *Table) lockRequest(c *Call) (redlock.LockRequest, error) {
	request := redlock.LockRequest{DB: c.Client.DB}
	words := argumentsOf(c)
	var err error
	if request.Key, err = parseKey(words.next()); err != nil {
		return request, err
	}
	if request.TTL, err = parseTTL(words.next(), t.env.MaxTTL); err != nil {
		return request, err
	}
	for words.more() {
		if err := t.lockOption(&words, lockOptions, &request); err != nil {
			return request, err
		}
	}
	return request, nil
}

// lockOption reads one of these options and its value into the request.
func (t *Table) lockOption(words *arguments, known []string, request *redlock.LockRequest) error {
	i, err := words.option(known)
	if err != nil {
		return err
	}
	switch name := known[i]; name {
	case "SHARED":
		return lockMode(request, redlock.Shared)
	case "LIMIT":
		value, err := words.value(name)
		if err != nil {
			return err
		}
		limit, err := bounds{least: 1, most: mostPermits}.parse(name, value)
		request.Limit = int(limit)
		return errors.Join(err, lockMode(request, redlock.Permits))
	case "TOKEN":
		value, err := words.value(name)
		if err == nil {
			request.Token, err = parseToken(value)
		}
		return err
	case "META":
		value, err := words.value(name)
		if err == nil {
			request.Meta, err = parseMeta(value)
		}
		return err
	case "FAIR":
		request.Fair = true
		return nil
	case "WAIT":
		return t.waitOption(words, request)
	case "HOLD":
		return t.holdOption(words, request)
	}
	return nil
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
	locks Locks
	sink  Sink
	held  *Held
	users *Users
	room  place // in the user's quota
	db    int
	key   redlock.Key
	mode  redlock.Mode

	grant     redlock.Grant
	givenBack bool
}

// decided takes the outcome from the masters.
func (a *lockAnswer) decided(grant redlock.Grant, err error) {
	if err != nil {
		a.room.free()
		a.sink.Deliver(failure(err))
		return
	}
	a.room.fillFor(a.roomFor(grant.Token), grant.Token, lasting(&grant))
	a.grant = grant
	a.sink.DeliverLate(a)
}

// Reply reports what is left of the lease at the moment it is written: replies
// wait for those before them, and a client counts from what it reads. It is a
// whole number of milliseconds above 0, or the lock is given back.
func (a *lockAnswer) Reply() Reply {
	validity := a.grant.Validity()
	if validity < time.Millisecond {
		return a.usedUp()
	}
	a.held.Remember(a.db, a.key, a.grant.Token, lasting(&a.grant))
	return Array(
		Bulk(string(a.grant.Token)),
		Int(validity.Milliseconds()),
		Int(int64(a.grant.Fence)),
	)
}

// usedUp answers for a lock that was granted but has no time left for the client.
func (a *lockAnswer) usedUp() Reply {
	a.giveBack()
	if a.grant.Fresh {
		return tooLate(a.grant.Spent(), "the lock is given back")
	}
	return tooLate(a.grant.Spent(), "the lock that this token already held is left as it is")
}

// Undelivered: the client has gone without reading that it holds the lock.
func (a *lockAnswer) Lost() { a.giveBack() }

// giveBack undoes the grant once. It leaves a lease that existed before this DLOCK:
// its holder, or the client's next try, counts on it.
func (a *lockAnswer) giveBack() {
	if a.grant.Fresh && !a.givenBack {
		a.givenBack = true
		a.users.released(a.roomFor(a.grant.Token), a.grant.Token)
		a.locks.GiveBack(a.grant)
	}
}

func (a *lockAnswer) roomFor(token redlock.Token) heldKey {
	if a.mode == redlock.Exclusive {
		return heldKey{a.db, a.key}
	}
	return roomBeside(a.db, a.key, token)
}
