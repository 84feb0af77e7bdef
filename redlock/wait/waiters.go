// This file begins and ends waits.

package wait

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"time"

	"redlockd/redlock/engine"
	"redlockd/redlock/lease"
	"redlockd/redlock/quorum"
	"redlockd/redlock/work"
)

// ErrLeft: the client left while it waited; nothing reads this answer.
var ErrLeft = errors.New("the client has left")

// Queues are the wait queues of all keys.
type Queues struct {
	waitList
	maxWaiters int   // bounds the requests that wait
	enqueued   int64 // number of the last waiter that requested a ticket
	places     places
}

// New returns the wait queues of a daemon. Of all requests at most maxWaiters wait, and of those
// for one key at most maxPerKey.
func New(e *engine.Engine, l *lease.Leases, maxWaiters, maxPerKey int) *Queues {
	s := &Queues{
		waitList: waitList{
			engine: e, leases: l, maxPerKey: maxPerKey, name: string(engine.NewToken())[:8],
			queues: map[queueID]*waitQueue{}, byKey: map[dbKey][]*waitQueue{}, edges: map[*waiter]*waiterEdges{},
		},
		maxWaiters: maxWaiters,
	}
	s.places = places{list: &s.waitList, all: map[placeID]*place{}, ofKey: map[dbKey]int{}, ofPoller: map[poller]int{}}
	lease.Follow(l, &s.places)
	return s
}

// Wait requests a lock and waits while another token holds the key, r.Wait at most. done
// is called exactly once, as for Lock, or with ErrLeft once leave was called. A grant
// that arrives after that is given back. When the time is over the answer is ErrHeld, or
// the reason why the masters could not decide.
func (q *Queues) Wait(b *engine.Batch, r Request, done lease.LockDone) (leave func()) {
	w := &waiter{list: &q.waitList, request: r, done: done, end: q.engine.Recent() + r.Wait}
	enter := q.enter
	if r.Fair {
		enter = q.enqueue
	}
	if r.Token == "" && lease.LevelOwner(r.Mode) == "" {
		enter(b, w)
		return w.leave
	}
	// Its token or owner may hold the key already: a repeat must not wait for its own lock.
	end := q.engine.Clock.AfterFunc(max(r.Wait, q.engine.MasterTimeout), w.onTrialTimeout)
	trial := r.LockRequest
	trial.Mode = lease.Waiting(r.Mode, nil)
	q.leases.Lock(b, trial, func(g lease.Grant, err error) {
		end.Stop()
		q.mu.Lock()
		if errors.Is(err, engine.ErrHeld) || IsUndecided(err) {
			w.noteDowngrade(err)
			w.everRefused = errors.Is(err, engine.ErrHeld)
			q.mu.Unlock()
			enter(nil, w)
			return
		}
		left := w.over
		w.over = true
		q.mu.Unlock()
		w.deliver(left, g, err)
	})
	return w.leave
}

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

// AwaitFree waits for a key to become free without taking the lock: for libraries that try again
// themselves when they are woken. Such waiters have a wait queue of their own. Each time the key is
// seen free, one waiter is woken, as by the one element that a release pushes on a list. The next
// waiter polls a moment later, in case the first no longer requests the lock. leave ends the wait of a
// client that has left.
func (q *Queues) AwaitFree(r AwaitRequest, done AwaitDone) (leave func()) {
	request := Request{LockRequest: lease.LockRequest{DB: r.DB, Key: r.Key, Requester: r.Requester}, Wait: r.Timeout}
	w := &waiter{list: &q.waitList, request: request, peekOnly: true, end: q.engine.Recent() + r.Timeout, done: func(_ lease.Grant, err error) {
		if errors.Is(err, engine.ErrHeld) || errors.Is(err, ErrLeft) {
			done(false, nil)
			return
		}
		done(err == nil, err)
	}}
	q.enter(nil, w)
	return w.leave
}

// AwaitWork waits in the queue of a work's record; see work.Await.
func (q *Queues) AwaitWork(db int, record engine.Key, wait, runs time.Duration, contend work.Contend, done func(error)) (leave func()) {
	now := q.engine.Clock.Now()
	w := &waiter{
		list: &q.waitList, request: Request{LockRequest: lease.LockRequest{DB: db, Key: record}, Wait: wait}, work: &workWaiter{contend, now + runs},
		done: func(_ lease.Grant, err error) { done(err) }, end: now + wait, everRefused: true,
	}
	q.enter(nil, w)
	return w.leave
}

// enter puts a waiter at the end of its queue.
func (q *Queues) enter(b *engine.Batch, w *waiter) {
	q.mu.Lock()
	if q.admitLocked(w) {
		q.joinLocked(b, w)
	}
}

// admitLocked counts a waiter, unless it may not wait; then it unlocks the mutex and answers.
func (q *Queues) admitLocked(w *waiter) bool {
	if w.over { // it left while its token was tried
		q.mu.Unlock()
		return false
	}
	if err := q.refusalLocked(w); err != nil {
		w.over = true
		q.mu.Unlock()
		w.done(lease.Grant{}, err)
		return false
	}
	q.count.Add(1)
	w.timer = q.engine.Clock.AfterFunc(max(w.end-q.engine.Clock.Now(), 0), w.onTimeout)
	return true
}

// joinLocked puts a waiter into its queue; the first one contends at once. It unlocks the mutex.
func (q *Queues) joinLocked(b *engine.Batch, w *waiter) {
	ln := q.queueLocked(w)
	ln.insertLocked(w)
	q.startEdgesLocked(w)
	if ln.fair {
		ln.refreshLocked()
	}
	first := ln.head == w && ln.contender == nil
	switch {
	case first && ln.work: // it has just been refused
		first, ln.runsUntil = false, w.work.runsUntil
		ln.watchLocked(0)
	case first:
		ln.setContenderLocked(w)
	}
	q.mu.Unlock()
	if first {
		ln.contend(b, w)
	}
}

// startEdgesLocked gives a waiter edges if its connection holds locks.
func (q *Queues) startEdgesLocked(w *waiter) {
	if q.engine.InProcess || w.request.Owner == nil || len(w.queue.keys) > 1 || w.peekOnly {
		return
	}
	r := w.request // the queue changes the mode of its own
	e := &waiterEdges{engine: q.engine, leases: q.leases, group: w.queue.group, request: &r, deadlock: w.onDeadlock}
	if e.start() {
		q.edges[w] = e
	}
}

// onDeadlock ends a wait that is in a cycle. If the waiter's request for the lock is under way, the
// next search decides.
func (w *waiter) onDeadlock(keys []engine.Key, began time.Duration) {
	l := w.list
	l.mu.Lock()
	if w.over || w.queue.contender == w || l.engine.Clock.Now()-began > maxSearch {
		l.mu.Unlock()
		return
	}
	w.endLocked(&Deadlock{Keys: keys})
}

// refusalLocked returns the reason why a request may not wait.
func (q *Queues) refusalLocked(w *waiter) error {
	ln := q.queues[w.queueID()]
	switch {
	case q.closed:
		return engine.ErrShutdown
	case q.refusing:
		return engine.ErrShutdown
	case q.count.Load() >= int64(q.maxWaiters):
		return &engine.Busy{What: "waiters", Limit: q.maxWaiters, Option: "--max-waiters"}
	case ln == nil:
		return nil
	case ln.length >= q.maxPerKey:
		return &engine.Busy{What: "waiters for this key", Limit: q.maxPerKey, Option: "--max-waiters-per-key"}
	}
	// Another request waits already, so the key is held. The first waiter detects a cycle
	// after its ballot, see waitQueue.decided.
	if deadlock := q.cycleLocked(w); deadlock != nil {
		return deadlock
	}
	return nil
}

// enqueue gets a waiter its ticket before the waiter enters a wait queue of this daemon.
func (q *Queues) enqueue(b *engine.Batch, w *waiter) {
	q.mu.Lock()
	if q.admitLocked(w) {
		q.enqueued++
		w.ticket = &lease.Ticket{ID: q.name + "/" + strconv.FormatInt(q.enqueued, 36)}
		q.proposeLocked(b, w)
	}
}

// proposeLocked proposes a ticket, and then the next one, until one is established or the wait is
// over. It unlocks the mutex.
func (q *Queues) proposeLocked(b *engine.Batch, w *waiter) {
	if w.over || q.closed {
		w.rejectLocked(engine.ErrShutdown)
		return
	}
	r := w.request.LockRequest
	r.Mode = lease.Enqueued(r.Mode, w.ticket)
	q.mu.Unlock()
	q.propose(b, &r, q.maxPerKey, ticketTimeout, func(p *proposal, r quorum.Result) {
		if pause := q.proposed(w, p, r); pause > 0 {
			q.engine.Clock.AfterFunc(q.engine.Spread(pause), func() {
				q.mu.Lock()
				q.proposeLocked(nil, w)
			})
		}
	})
}

// proposed puts a waiter into its wait queue, by the number of its ticket. Otherwise it returns when
// the next ticket is proposed. The end of the wait may have to report why this one failed.
func (q *Queues) proposed(w *waiter, p *proposal, r quorum.Result) (pause time.Duration) {
	q.mu.Lock()
	err := p.err()
	switch t := &p.ballot.Tally; {
	case r == quorum.Granted && !w.over && !q.closed:
		w.ticket.Number, w.ticket.Since = p.ballot.Proposal, q.engine.Clock.Now()
		w.firstErr = nil
		q.joinLocked(nil, w)
		return 0
	case r == quorum.Granted:
		err = engine.ErrShutdown
	case err != nil:
	case t.Answered() >= t.Quorum:
		w.failures, w.everRefused, pause = 0, true, fasterPause
	default:
		w.firstErr = p.ballot.NoQuorum("it waits for its place in the queue")
		w.failures++
		pause = retryDelay(w.failures)
	}
	if pause == 0 {
		w.rejectLocked(err)
		return 0
	}
	q.mu.Unlock()
	return pause
}

// rejectLocked ends a wait that got no ticket, unless it is over. It unlocks the mutex.
func (w *waiter) rejectLocked(err error) {
	if !w.over {
		w.endLocked(err)
		return
	}
	w.list.mu.Unlock()
	w.leaveQueue()
}

// leave ends a wait whose client has left.
func (w *waiter) leave() {
	l := w.list
	l.mu.Lock()
	if w.over {
		pending := w.pending
		w.pending = false
		l.mu.Unlock()
		if pending {
			w.done(lease.Grant{}, ErrLeft)
		}
		return
	}
	if ln := w.queue; ln != nil && ln.work && ln.contender == w { // its wait ends with the answer
		w.end = 0
		l.mu.Unlock()
		return
	}
	w.removeLocked()
	e := l.edges[w]
	delete(l.edges, w)
	l.mu.Unlock()
	w.leaveQueue()
	w.done(lease.Grant{}, ErrLeft)
	if e != nil {
		e.delete(func() {})
	}
}

// onTimeout ends a wait, whatever its request does: the masters may be silent. What that is
// granted after the answer is given back. A wait that is shorter has a master timeout, as a request
// without one has: it gets a free key. A request for work ends with its own answer.
func (w *waiter) onTimeout() {
	w.list.mu.Lock()
	contends := w.queue != nil && w.queue.contender == w
	if w.over || contends && w.queue.work {
		w.list.mu.Unlock()
		return
	}
	if left := w.end - w.request.Wait + w.list.engine.MasterTimeout - w.list.engine.Clock.Now(); contends && left > 0 {
		w.timer.Reset(left)
		w.list.mu.Unlock()
		return
	}
	err := w.finalError()
	if contends && w.request.Token != "" && errors.Is(err, engine.ErrHeld) {
		err = w.unanswered() // it may be making the writer a reader
	}
	w.endLocked(err)
}

// onTrialTimeout ends a wait whose token is being tried.
func (w *waiter) onTrialTimeout() {
	w.list.mu.Lock()
	tried := w.over || w.timer != nil
	w.over = w.over || !tried
	w.list.mu.Unlock()
	if !tried {
		w.done(lease.Grant{}, w.unanswered())
	}
}

func (w *waiter) unanswered() error {
	return w.list.engine.NoQuorum(&engine.Missing{}, "the wait was over before the masters had answered")
}

// endLocked ends a wait without a grant. It unlocks the mutex.
func (w *waiter) endLocked(err error) {
	w.removeLocked()
	w.list.mu.Unlock()
	w.answer(lease.Grant{}, err)
}

// finalError is the answer of a wait without a grant. It is ErrHeld only if the queue's
// last ballot for the key was refused, whichever waiter started that ballot.
func (w *waiter) finalError() error {
	switch {
	case w.queue != nil && w.queue.lastErr != nil:
		return w.queue.lastErr
	case w.firstErr != nil:
		return w.firstErr
	case w.downgrading != nil:
		return w.downgrading
	case !w.everRefused && (w.queue == nil || !w.queue.everDecided):
		return w.unanswered()
	}
	return engine.ErrHeld
}

// Freed is called for every release through this daemon, as part of its batch: the
// head's ballot leaves in the same flush. It is not known yet whether the release will
// succeed; the masters decide.
func (q *Queues) Freed(b *engine.Batch, db int, key engine.Key) {
	if q.count.Load() == 0 {
		return
	}
	var buffer [2]*waiter
	next := buffer[:0]
	q.mu.Lock()
	lines := q.byKey[dbKey{db, key}]
	window := q.windowLocked(lines)
	for _, ln := range lines {
		if window != nil && !ln.peekOnly { // what a library waits with is for its next try
			continue
		}
		if w := ln.handOverLocked(); w != nil {
			next = append(next, w)
		}
	}
	q.mu.Unlock()
	if window != nil {
		q.openWindow(b, db, window)
	}
	for _, w := range next {
		w.queue.contend(b, w)
	}
}

// Refuse answers new waiters with ErrShutdown from now on. Those that wait go on until End.
func (q *Queues) Refuse() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.refusing = true
}

// End answers every waiter with ErrShutdown and admits no new ones.
func (q *Queues) End() {
	q.mu.Lock()
	q.closed = true
	q.places.end()
	q.dropLocked(func(*waiter) error { return engine.ErrShutdown })
}

// DropMoved answers each waiter for a key that has left the group with a *engine.Moving. The one whose
// request is in flight follows with that.
func (q *Queues) DropMoved() {
	q.mu.Lock()
	q.dropLocked(func(w *waiter) error {
		if moving := w.movingLocked(); moving != nil && w.queue.contender != w {
			return moving
		}
		return nil
	})
}

// dropLocked answers the waiters for which why returns an error, in the order of their arrival. It
// unlocks the mutex.
func (q *Queues) dropLocked(why func(*waiter) error) {
	type dropped struct {
		*waiter
		err error
	}
	var all []dropped
	for _, ln := range q.queues {
		for w := ln.head; w != nil; w = w.next {
			if err := why(w); err != nil {
				all = append(all, dropped{w, err})
			}
		}
	}
	slices.SortFunc(all, func(a, b dropped) int { return cmp.Compare(a.end-a.request.Wait, b.end-b.request.Wait) })
	for _, w := range all {
		w.removeLocked()
	}
	q.mu.Unlock()
	for _, w := range all {
		w.answer(lease.Grant{}, w.err)
	}
}
