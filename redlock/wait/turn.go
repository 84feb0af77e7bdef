// This file lets the waiters of several daemons take turns without FAIR.
//
// A daemon hands a lock over to its own next waiter in the flush of the release, so waiters of other daemons
// never find the key free. A lock becomes fair when somebody was passed for a while: the head of a
// wait queue takes a ticket, as a waiter with FAIR does, after others were granted the key maxPassed times or
// for maxPassedTime, and at once when it is refused because of a ticket. From its first refusal or
// hand-over on, each request of a wait queue is a script that looks at the queue of FAIR. So each
// daemon has one ticket at a time then, for its head, and the locks go round. That ends by itself: a
// head that finds no ticket of another needs none.

package wait

import (
	"errors"
	"strconv"

	"redlockd/redlock/lease"
	"redlockd/redlock/quorum"
)

// enlistsLocked returns the request for a ticket if the refused head needs one now. Waiters with FAIR have
// theirs, and a waiter that takes no lock needs none. One for several keys would hold up the waiters of
// each, beside a key that is free: who wants its turn there requests it with FAIR.
func (wq *waitQueue) enlistsLocked(w *waiter, err error) *lease.LockRequest {
	l := wq.list
	if wq.fair || wq.work || wq.peekOnly || len(wq.keys) > 1 || wq.head != w || w.ticket != nil {
		return nil
	}
	if !errors.Is(err, lease.ErrBehind) && !wq.passed.enough(l.engine.Clock.Now()) {
		return nil
	}
	l.heads++
	w.ticket = &lease.Ticket{ID: l.name + "+" + strconv.FormatInt(l.heads, 36)}
	r := w.request.LockRequest
	r.Mode = lease.Enqueued(r.Mode, w.ticket)
	return &r
}

// enlist proposes a ticket for the head, and then the next one, until one is established or the wait
// is over; then it calls established. Meanwhile the head contends without one.
func (wq *waitQueue) enlist(w *waiter, r *lease.LockRequest, established func()) {
	l := wq.list
	l.propose(nil, r, l.maxPerKey, ticketTimeout, func(p *proposal, result quorum.Result) {
		l.mu.Lock()
		t, pause := &p.ballot.Tally, fasterPause
		switch {
		case w.over || l.closed:
			l.mu.Unlock()
			l.dequeue(r) // what took it out may have been sent before
			return
		case result == quorum.Granted:
			w.ticket.Number, w.ticket.Since = p.ballot.Proposal, l.engine.Clock.Now()
			wq.refreshLocked()
			l.mu.Unlock()
			established()
			return
		case p.err() != nil: // the queue is full or no queue: the wait goes on without a ticket
			l.mu.Unlock()
			return
		case t.Answered() < t.Quorum:
			w.failures++
			pause = retryDelay(w.failures)
		}
		l.mu.Unlock()
		l.engine.Clock.AfterFunc(l.engine.Spread(pause), func() {
			l.mu.Lock()
			over := w.over || l.closed
			l.mu.Unlock()
			if !over {
				wq.enlist(w, r, established)
			}
		})
	})
}
