// This file waits for a key to become free without taking the lock: for libraries that
// try again themselves when they are woken.
//
// Such waiters have a wait queue of their own beside the requests that want the lock, and
// waitqueue.go serves both. The head polls the masters after a release through this
// daemon, on reports from the masters, and on timers. Only the command differs: it peeks
// and takes nothing. Each time the key is seen free, one waiter is woken, as by the one
// element that a release pushes on a list. The next waiter polls a moment later, in case
// the first no longer wants the lock.

package wait

import (
	"errors"
	"time"

	"redlockd/redlock/engine"
	"redlockd/redlock/lease"
)

// AwaitRequest waits for a key that no token holds.
type AwaitRequest struct {
	DB        int
	Key       engine.Key
	Timeout   time.Duration    // how long at most
	Requester *lease.Requester // the client, for people; nil = unknown
}

// AwaitDone is called exactly once, from any goroutine. free is true if a quorum of
// masters had nothing at the key, and false after the timeout or once leave was called.
// err is *NoQuorum, *Expired, *Busy or ErrShutdown.
type AwaitDone func(free bool, err error)

// AwaitFree waits in order of arrival. leave ends the wait of a client that has left.
func (l *Queues) AwaitFree(r AwaitRequest, done AwaitDone) (leave func()) {
	request := lease.LockRequest{DB: r.DB, Key: r.Key, Wait: r.Timeout, Requester: r.Requester}
	w := &waiter{waits: l, request: request, peekOnly: true, end: l.engine.Recent() + r.Timeout, done: func(_ lease.Grant, err error) {
		if errors.Is(err, engine.ErrHeld) || errors.Is(err, ErrLeft) {
			done(false, nil)
			return
		}
		done(err == nil, err)
	}}
	l.enter(nil, w)
	return w.leave
}

// peek is Lock without taking the lock: it only determines whether Lock would be refused.
func (l *Queues) peek(b *engine.Batch, r lease.LockRequest, done lease.LockDone) {
	l.leases.View(b, r.DB, r.Key, func(v lease.View, err error) {
		if err == nil && !v.Free {
			err = engine.ErrHeld
		}
		done(lease.Grant{}, err)
	})
}
