// Waiting until somebody else lets go, without taking the lock: for libraries
// that ask again themselves when they are woken.
//
// Such waiters stand in a line of their own beside those who want the lock, and
// line.go serves both: a release through this daemon, news from the masters and
// timers have the head of the line ask. Only the question is another one: it
// looks, and takes nothing. One waiter is woken for each time that the key is
// seen free, as by the one element that a release pushes on a list; the next
// one looks again a moment later, should the first not want it any more.
package redlock

import (
	"errors"
	"time"
)

// AwaitRequest waits for a key that nobody holds.
type AwaitRequest struct {
	DB       int
	Key      Key
	Patience time.Duration // how long at most
	Who      *Who          // who asks, for people; nil = unknown
}

// AwaitDone is called exactly once, from any goroutine: free is true if a quorum
// of masters had nothing at the key, false after the patience or once the wait
// was left. err is *NoQuorum, *Expired, *Busy or ErrShutdown.
type AwaitDone func(free bool, err error)

// AwaitFree waits, in order of arrival; leave ends the wait of a client that has gone.
func (l *Locker) AwaitFree(r AwaitRequest, done AwaitDone) (leave func()) {
	request := LockRequest{DB: r.DB, Key: r.Key, Wait: r.Patience, Who: r.Who, looks: true}
	w := &waiter{waits: &l.waits, request: request, end: l.recent() + r.Patience, done: func(_ Grant, err error) {
		if errors.Is(err, ErrHeld) || errors.Is(err, ErrLeft) {
			done(false, nil)
			return
		}
		done(err == nil, err)
	}}
	l.waits.enter(nil, w)
	return w.leave
}

// glance is Lock for somebody who only wants to know whether it would be refused.
func (l *Locker) glance(b *Batch, r LockRequest, done LockDone) {
	l.View(b, r.DB, r.Key, func(v View, err error) {
		if err == nil && !v.Free {
			err = ErrHeld
		}
		done(Grant{}, err)
	})
}
