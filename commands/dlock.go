// DLOCK key ttl [TOKEN token] [META text]: takes a lock.
package commands

import (
	"fmt"
	"time"

	"redlockd/redlock"
)

// lockOptions are the options of DLOCK. Those from firstUnserved on belong to
// the language but not yet to this version: silently ignoring one would hand
// out another lock than was asked for.
var lockOptions = []string{"TOKEN", "META", "SHARED", "LIMIT", "FAIR", "WAIT", "HOLD"}

const firstUnserved = 2

// dlock answers [token, validity, fence], or nil if somebody else holds the key.
func (t *Table) dlock(c *Call) error {
	request, err := t.lockRequest(c)
	if err != nil {
		return err
	}
	room, err := t.env.Users.take(t.user(c.Client), heldKey{request.DB, request.Key})
	if err != nil {
		c.Reply(Error("TRYLATER", err.Error()))
		return nil
	}
	answer := &lockAnswer{
		locks: t.env.Locks, sink: c.Sink, held: &c.Client.Held, users: t.env.Users, room: room,
		db: request.DB, key: request.Key,
	}
	t.env.Locks.Lock(c.Batch, request, answer.decided)
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
		if err := lockOption(&words, &request); err != nil {
			return request, err
		}
	}
	return request, nil
}

// lockOption reads one option and its value into the request.
func lockOption(words *arguments, request *redlock.LockRequest) error {
	i, err := words.option(lockOptions)
	if err != nil {
		return err
	}
	name := lockOptions[i]
	if i >= firstUnserved {
		return fmt.Errorf("option %s is not served by this version of redlockd; nothing was locked", name)
	}
	value, err := words.value(name)
	if err != nil {
		return err
	}
	if name == "TOKEN" {
		request.Token, err = parseToken(value)
	} else {
		request.Meta, err = parseMeta(value)
	}
	return err
}

// lockAnswer is the reply of one DLOCK from the request to the socket. The
// session calls Reply and Lost one after the other, never at the same time.
type lockAnswer struct {
	locks Locks
	sink  Sink
	held  *Held
	users *Users
	room  place // in the user's quota
	db    int
	key   redlock.Key

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
	a.room.fill(heldKey{a.db, a.key}, grant)
	a.grant = grant
	a.sink.DeliverLate(a)
}

// Reply tells what is left of the lease at the moment it is written: replies
// wait for those before them, and a client counts from what it reads. It is a
// whole number of milliseconds above 0, or the lock is given back.
func (a *lockAnswer) Reply() Reply {
	validity := a.grant.Validity()
	if validity < time.Millisecond {
		return a.usedUp()
	}
	a.held.Remember(a.db, a.key, a.grant.Token, validity)
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

// Lost: the client has gone without reading that it holds the lock.
func (a *lockAnswer) Lost() { a.giveBack() }

// giveBack undoes the grant once. A lease that existed before this DLOCK is
// not this reply's to undo: its holder, or the client's next try, counts on it.
func (a *lockAnswer) giveBack() {
	if a.grant.Fresh && !a.givenBack {
		a.givenBack = true
		a.users.released(heldKey{a.db, a.key}, a.grant.Token)
		a.locks.GiveBack(a.grant)
	}
}
