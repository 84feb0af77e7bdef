// waitQueue is the FIFO of local waiters for one key. Only its head contends on the masters.
//
// The head contends when it becomes the head of a queue whose key is not known to be held. It
// contends again at every hint that the key may be free:
//
//   - a release through this daemon: the release and the head's request leave in one
//     flush, so nothing is wasted between two holders of one daemon;
//   - a report from the masters (pool.Watch): a key that went away or changed on a
//     quorum, or the moment at which the copies of a quorum will have expired;
//   - a timer, for reports that were lost.
//
// A hint is only a hint: the masters always decide the grant. If a hint comes while the head's
// request is in flight, the queue remembers it and the head contends again afterwards. So no
// hint falls between a request and its answer.

package wait

import (
	"errors"
	"time"

	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/lease"
)

const (
	// settleDelay is how long a queue behind a lock that was granted here waits before it
	// watches the masters. Most such locks are released here, and then the reports would be
	// about this daemon's own release.
	settleDelay = 50 * time.Millisecond
	// pollWatched and pollUnwatched bound what a lost report costs, with a quorum of masters
	// watched and without.
	pollWatched   = 5 * time.Second
	pollUnwatched = 500 * time.Millisecond
	// maxStreak: after so many hand-overs in a row a release goes out alone. The head contends
	// after yieldPause, so that waiters of other daemons are served, too, and until its next grant
	// with a script, which lets the queue of FAIR go first.
	maxStreak  = 256
	yieldPause = 2 * time.Millisecond
	// minRetryDelay and maxRetryDelay bound the delays after undecided requests.
	minRetryDelay = 20 * time.Millisecond
	maxRetryDelay = time.Second
)

// retryDelay is the pause after some requests in a row that the masters could not decide.
func retryDelay(failures int32) time.Duration {
	return min(maxRetryDelay, minRetryDelay<<min(failures-1, 8))
}

// waitQueue holds the waiters of one key. The mutex of Queues guards all of it.
type waitQueue struct {
	waits *Queues
	queueID
	keys  []engine.Key
	group *pool.Group

	head, tail  *waiter
	length      int
	contender   *waiter // whose request is in flight
	hinted      bool    // the key may have become free since the request
	streak      int     // hand-overs in a row
	failures    int32   // undecided requests in a row …
	lastErr     error   // … and why the last of them was not decided, nil if it was
	everDecided bool    // a request has been decided
	reads       bool    // the head's requests are scripts: of foreignLocked, or after maxStreak

	runsUntil time.Duration // when the attempt that runs has timed out; forever in a queue for locks

	refreshTimer pool.Timer // of FAIR, see refreshTickets
	timer        pool.Timer // nil until it is first set
	wakeAt       time.Duration
	watch        queueWatch
}

// insertLocked puts a waiter at the end, or where its ticket belongs.
func (ln *waitQueue) insertLocked(w *waiter) {
	after := ln.tail
	for ln.fair && after != nil && after.request.Ticket.Number > w.request.Ticket.Number {
		after = after.prev
	}
	w.queue, w.prev = ln, after
	if after == nil {
		w.next, ln.head = ln.head, w
	} else {
		w.next, after.next = after.next, w
	}
	if w.next == nil {
		ln.tail = w
	} else {
		w.next.prev = w
	}
	ln.length++
}

func (ln *waitQueue) unlinkLocked(w *waiter) {
	if w.prev == nil {
		ln.head = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		ln.tail = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.prev, w.next = nil, nil
	ln.length--
}

// dropIfDoneLocked drops a queue without waiters and without a request in flight.
func (ln *waitQueue) dropIfDoneLocked() {
	if ln.head != nil || ln.contender != nil {
		return
	}
	for _, timer := range []pool.Timer{ln.timer, ln.refreshTimer} {
		if timer != nil {
			timer.Stop()
		}
	}
	ln.unwatchLocked()
	ln.waits.forgetLocked(ln)
}

// setContenderLocked notes that the waiter's request is about to leave.
func (ln *waitQueue) setContenderLocked(w *waiter) {
	ln.contender, ln.hinted, w.request.Reads = w, false, ln.reads
	if ln.watch.confirmed = ln.unchangedLocked(); !ln.watch.confirmed {
		ln.unwatchLocked()
	}
}

// contend sends the waiter's request to the masters; b may be nil.
func (ln *waitQueue) contend(b *engine.Batch, w *waiter) {
	if ln.work {
		w.work.contend(b, func(runs time.Duration, err error) {
			ln.waits.mu.Lock()
			ln.runsUntil = ln.waits.engine.Clock.Now() + runs
			ln.waits.mu.Unlock()
			ln.decided(w, lease.Grant{}, err)
		})
		return
	}
	lock := ln.waits.leases.Lock
	if ln.peekOnly {
		lock = ln.waits.peek
	}
	lock(b, w.request, func(g lease.Grant, err error) { ln.decided(w, g, err) })
}

// handOverLocked is the waiter whose request leaves together with a release, if any.
func (ln *waitQueue) handOverLocked() *waiter {
	switch {
	case ln.contender != nil:
		ln.hinted = true
		return nil
	case ln.head == nil:
		return nil
	}
	if ln.streak++; ln.streak > maxStreak {
		ln.streak, ln.reads = 0, true
		ln.watch.due = false // when the timer fires, the head contends
		ln.setTimerLocked(yieldPause)
		return nil
	}
	ln.setContenderLocked(ln.head)
	return ln.head
}

func (ln *waitQueue) decided(w *waiter, g lease.Grant, err error) {
	s := ln.waits
	s.mu.Lock()
	ln.contender = nil
	left := w.over
	w.noteDowngrade(err)
	stays := !left && (errors.Is(err, engine.ErrHeld) || IsUndecided(err)) && s.engine.Clock.Now() < w.end && !s.closed
	if stays {
		w.firstErr = nil // from here on the wait queue has it
		if errors.Is(err, engine.ErrHeld) {
			if keys := s.cycleLocked(w); keys != nil {
				stays, err = false, &Deadlock{Keys: keys}
			}
		}
	}
	if stays && s.engine.Ownership != nil {
		if moving := s.movingLocked(w); moving != nil {
			stays, err = false, moving
		}
	}
	if !stays && !left {
		s.removeLocked(w)
	}
	next := ln.nextLocked(g, err)
	ln.dropIfDoneLocked()
	s.mu.Unlock()
	if !stays && !left {
		w.leaveQueue()
	}
	switch {
	case stays:
	case !left:
		w.answer(g, err)
	case err == nil:
		s.leases.Undelivered(g) // and its release hands over to the next
	}
	if next != nil {
		ln.contend(nil, next)
	}
}

// nextLocked is the waiter that contends after an answer; if nil, the timer is set instead.
func (ln *waitQueue) nextLocked(g lease.Grant, err error) *waiter {
	head := ln.head
	undecided := IsUndecided(err)
	if undecided {
		ln.lastErr = err
	} else {
		ln.failures, ln.lastErr, ln.everDecided = 0, nil, true
	}
	if err == nil { // the key is a lock, or free again
		ln.reads = false
	}
	switch {
	case head == nil:
		return nil
	case undecided:
		ln.failures++
		ln.setTimerLocked(ln.waits.engine.Spread(retryDelay(ln.failures)))
		return nil
	case err == nil && g.Mode() == lease.Exclusive && !ln.hinted:
		// Held by a client that this daemon has just served; if it has left, its release
		// follows.
		if ln.fair { // the next one may be in another daemon's queue
			ln.watchLocked(0)
		} else {
			ln.watchLocked(settleDelay)
		}
		return nil
	case errors.Is(err, engine.ErrHeld) && !ln.hinted:
		ln.streak = 0
		if ln.unchangedLocked() {
			ln.pollLocked(ln.runsUntil)
			return nil
		}
		ln.watchLocked(0)
		ln.watch.behind = errors.Is(err, lease.ErrBehind)
		ln.watch.unseen = ln.watch.behind && head.request.Mode != lease.Exclusive
		return nil
	}
	ln.setContenderLocked(head)
	return head
}

func (ln *waitQueue) setTimerLocked(delay time.Duration) {
	clock := ln.waits.engine.Clock
	ln.wakeAt = clock.Now() + delay
	if ln.timer == nil {
		ln.timer = clock.AfterFunc(delay, ln.onTimer)
		return
	}
	ln.timer.Reset(delay)
}

// onTimer watches the key anew, or lets the head contend.
func (ln *waitQueue) onTimer() {
	s := ln.waits
	s.mu.Lock()
	if ln.contender != nil || ln.head == nil {
		s.mu.Unlock()
		return
	}
	if early := ln.wakeAt - s.engine.Clock.Now(); early > 0 { // the timer was set anew while it fired, or its clock runs fast
		ln.timer.Reset(early)
		s.mu.Unlock()
		return
	}
	if ln.watch.due {
		ln.watchLocked(0)
		s.mu.Unlock()
		return
	}
	w := ln.head
	ln.setContenderLocked(w)
	s.mu.Unlock()
	ln.contend(nil, w)
}
