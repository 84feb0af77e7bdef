// This file keeps the requests that wait for a key in this daemon.
//
// Waiters of one key stand in a wait queue, in order of arrival. Only the head of the
// queue contends on the masters (waitqueue.go): a thousand waiters cost them what one
// costs. A waiter is an entry and a timer, not a goroutine.

package wait

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/lease"
	"redlockd/redlock/work"
)

// ErrLeft: the client left while it waited; nothing reads this answer.
var ErrLeft = errors.New("the client has left")

// dbKey identifies a key for which a request may wait.
type dbKey struct {
	db  int
	key engine.Key
}

// queueID identifies a wait queue. Queues differ by their keys, by whether their waiters
// also have a ticket on the masters, and by whether they take the lock at all.
type queueID struct {
	db       int
	keys     string
	fair     bool
	peekOnly bool // they do not take the lock
	work     bool // they want work, and the key is its record
}

// waiter is one request that waits. The mutex of Queues guards it.
type waiter struct {
	waits       *Queues
	queue       *waitQueue // nil until the waiter is in a queue
	prev, next  *waiter
	request     lease.LockRequest
	work        *workWaiter // what it requests instead of a lock; nil: a lock
	done        lease.LockDone
	end         time.Duration // of the wait, on the pool's clock
	timer       pool.Timer
	firstErr    error            // why the masters could not decide before the waiter was in a queue
	downgrading *engine.NoQuorum // one of its ballots has begun to downgrade the writer
	peekOnly    bool             // it does not take the lock, see AwaitFree
	everRefused bool             // another request precedes this one: its ballot was refused, or others were faster in the queue
	over        bool             // out of the queue, answered or about to be
	pending     bool             // its answer waits for the deletion of its edges
	failures    int32            // proposals of its ticket in a row that the masters could not decide
}

// workWaiter requests work. The attempt before it lasts until runsUntil.
type workWaiter struct {
	contend   work.Contend
	runsUntil time.Duration
}

// Queues are the wait queues of all keys.
type Queues struct {
	engine *engine.Engine
	leases *lease.Leases
	// maxWaiters bounds the requests that wait, maxPerKey those for one key.
	maxWaiters, maxPerKey int

	name  string       // of this daemon, in the queues on the masters
	count atomic.Int64 // at 0 a release does not take the lock

	mu       sync.Mutex
	queues   map[queueID]*waitQueue
	byKey    map[dbKey][]*waitQueue // the queues that wait for a key, FAIR first
	enqueued int64                  // number of the last waiter that requested a ticket
	edges    map[*waiter]*waiterEdges
	closed   bool
}

// New returns the wait queues of a daemon. Of all requests at most maxWaiters wait, and of those
// for one key at most maxPerKey.
func New(e *engine.Engine, l *lease.Leases, maxWaiters, maxPerKey int) *Queues {
	return &Queues{engine: e, leases: l, maxWaiters: maxWaiters, maxPerKey: maxPerKey, name: string(engine.NewToken())[:8]}
}

// Wait requests a lock and waits while another token holds the key, r.Wait at most. done
// is called exactly once, as for Lock, or with ErrLeft once leave was called. A grant
// that arrives after that is given back. When the time is over the answer is ErrHeld, or
// the reason why the masters could not decide.
func (l *Queues) Wait(b *engine.Batch, r lease.LockRequest, done lease.LockDone) (leave func()) {
	w := &waiter{waits: l, request: r, done: done, end: l.engine.Recent() + r.Wait}
	enter := l.enter
	if r.Fair {
		enter = l.enqueue
	}
	if r.Token == "" && r.Reenters == "" {
		enter(b, w)
		return w.leave
	}
	// Its token or owner may hold the key already: a repeat must not wait for its own lock.
	l.leases.Lock(b, r, func(g lease.Grant, err error) {
		if errors.Is(err, engine.ErrHeld) || IsUndecided(err) {
			w.noteDowngrade(err)
			w.everRefused = errors.Is(err, engine.ErrHeld)
			enter(nil, w)
			return
		}
		w.finishFirst(g, err)
	})
	return w.leave
}

// finishFirst answers a waiter that was never in a queue.
func (w *waiter) finishFirst(g lease.Grant, err error) {
	w.waits.mu.Lock()
	left := w.over
	w.over = true
	w.waits.mu.Unlock()
	switch {
	case !left:
		w.done(g, err)
	case err == nil:
		w.waits.leases.Undelivered(g)
	}
}

// enter puts a waiter at the end of its queue.
func (s *Queues) enter(b *engine.Batch, w *waiter) {
	s.mu.Lock()
	if s.admitLocked(w) {
		s.joinLocked(b, w)
	}
}

// admitLocked counts a waiter, unless it may not wait; then it unlocks the mutex and answers.
func (s *Queues) admitLocked(w *waiter) bool {
	if w.over { // it left while its token was tried
		s.mu.Unlock()
		return false
	}
	if err := s.refusalLocked(w); err != nil {
		w.over = true
		s.mu.Unlock()
		w.done(lease.Grant{}, err)
		return false
	}
	s.count.Add(1)
	w.timer = s.engine.Clock.AfterFunc(max(w.end-s.engine.Clock.Now(), 0), w.onTimeout)
	return true
}

// joinLocked puts a waiter into its queue; the first one contends at once. It unlocks the mutex.
func (s *Queues) joinLocked(b *engine.Batch, w *waiter) {
	ln := s.queueLocked(w)
	ln.insertLocked(w)
	s.startEdgesLocked(w)
	if ln.fair && ln.refreshTimer == nil {
		ln.refreshTimer = s.engine.Clock.AfterFunc(refreshInterval, ln.refreshTickets)
		db := ln.db
		ln.group.OnReconnect(func() []pool.Operation { return s.refreshAfterReconnect(db) })
	}
	first := ln.head == w && ln.contender == nil
	switch {
	case first && ln.work: // it has just been refused
		first, ln.runsUntil = false, w.work.runsUntil
		ln.watchLocked(0)
	case first:
		ln.setContenderLocked(w)
	}
	s.mu.Unlock()
	if first {
		ln.contend(b, w)
	}
}

// refusalLocked returns the reason why a request may not wait.
func (s *Queues) refusalLocked(w *waiter) error {
	ln := s.queues[w.queueID()]
	switch {
	case s.closed:
		return engine.ErrShutdown
	case s.count.Load() >= int64(s.maxWaiters):
		return &engine.Busy{What: "waiters", Limit: s.maxWaiters, Option: "--max-waiters"}
	case ln == nil:
		return nil
	case ln.length >= s.maxPerKey:
		return &engine.Busy{What: "waiters for this key", Limit: s.maxPerKey, Option: "--max-waiters-per-key"}
	}
	// Another request waits already, so the key is held. The first waiter detects a cycle
	// after its ballot, see waitQueue.decided.
	if keys := s.cycleLocked(w); keys != nil {
		return &Deadlock{Keys: keys}
	}
	return nil
}

// queueID of a request: several keys are one queue in whatever order they are named.
func (w *waiter) queueID() queueID {
	r := &w.request
	id := queueID{db: r.DB, keys: string(r.Key), fair: r.Fair, peekOnly: w.peekOnly, work: w.work != nil}
	if len(r.More) > 0 {
		var names strings.Builder
		for _, key := range r.SortedKeys() {
			names.WriteString(string(key))
			names.WriteByte(0)
		}
		id.keys = names.String()
	}
	return id
}

func (s *Queues) queueLocked(w *waiter) *waitQueue {
	id := w.queueID()
	if ln := s.queues[id]; ln != nil {
		return ln
	}
	ln := &waitQueue{waits: s, queueID: id, keys: w.request.SortedKeys(), group: s.engine.Pool.Group(id.db), runsUntil: forever}
	if s.queues == nil {
		s.queues, s.byKey = map[queueID]*waitQueue{}, map[dbKey][]*waitQueue{}
	}
	s.queues[id] = ln
	for _, key := range ln.keys {
		at := dbKey{id.db, key}
		if id.fair {
			s.byKey[at] = append([]*waitQueue{ln}, s.byKey[at]...)
		} else {
			s.byKey[at] = append(s.byKey[at], ln)
		}
	}
	return ln
}

func (s *Queues) forgetLocked(ln *waitQueue) {
	delete(s.queues, ln.queueID)
	for _, key := range ln.keys {
		at := dbKey{ln.db, key}
		if s.byKey[at] = slices.DeleteFunc(s.byKey[at], func(other *waitQueue) bool { return other == ln }); len(s.byKey[at]) == 0 {
			delete(s.byKey, at)
		}
	}
}

// removeLocked removes a waiter from its queue, if it is in one. The caller must then
// remove it from the queues on the masters and answer it.
func (s *Queues) removeLocked(w *waiter) {
	w.over = true
	if w.timer == nil {
		return // its token is being tried
	}
	w.timer.Stop()
	if e := s.edges[w]; e != nil {
		e.timer.Stop()
	}
	s.count.Add(-1)
	if w.queue != nil {
		w.queue.unlinkLocked(w)
		w.queue.dropIfDoneLocked()
	}
}

// leave ends a wait whose client has left.
func (w *waiter) leave() {
	s := w.waits
	s.mu.Lock()
	if w.over {
		pending := w.pending
		w.pending = false
		s.mu.Unlock()
		if pending {
			w.done(lease.Grant{}, ErrLeft)
		}
		return
	}
	if ln := w.queue; ln != nil && ln.work && ln.contender == w { // its wait ends with the answer
		w.end = 0
		s.mu.Unlock()
		return
	}
	s.removeLocked(w)
	s.mu.Unlock()
	w.leaveQueue()
	w.done(lease.Grant{}, ErrLeft)
	w.deleteEdges(func() {})
}

// onTimeout ends a wait. A ballot of the waiter that is under way may still be granted,
// and then the grant is the answer.
func (w *waiter) onTimeout() {
	s := w.waits
	s.mu.Lock()
	if w.over || w.queue != nil && w.queue.contender == w {
		s.mu.Unlock()
		return
	}
	w.endLocked(w.finalError())
}

// endLocked ends a wait without a grant. It unlocks the mutex.
func (w *waiter) endLocked(err error) {
	w.waits.removeLocked(w)
	w.waits.mu.Unlock()
	w.leaveQueue()
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
		return w.waits.engine.NoQuorum(&engine.Missing{}, "the wait was over before the masters had answered")
	}
	return engine.ErrHeld
}

// noteDowngrade keeps an error that a later refusal must not hide.
func (w *waiter) noteDowngrade(err error) {
	if n := (*engine.NoQuorum)(nil); errors.As(err, &n) && n.Downgrading {
		w.downgrading = n
	}
}

// Freed is called for every release through this daemon, as part of its batch: the
// head's ballot leaves in the same flush. It is not known yet whether the release will
// succeed; the masters decide.
func (s *Queues) Freed(b *engine.Batch, db int, key engine.Key) {
	if s.count.Load() == 0 {
		return
	}
	type contender struct {
		queue  *waitQueue
		waiter *waiter
	}
	var buffer [2]contender
	next := buffer[:0]
	s.mu.Lock()
	for _, ln := range s.byKey[dbKey{db, key}] {
		if w := ln.handOverLocked(); w != nil {
			next = append(next, contender{ln, w})
		}
	}
	s.mu.Unlock()
	for _, c := range next {
		c.queue.contend(b, c.waiter)
	}
}

// End answers every waiter with ErrShutdown and admits no new ones.
func (s *Queues) End() {
	s.mu.Lock()
	s.closed = true
	var all []*waiter
	for _, ln := range s.queues {
		for w := ln.head; w != nil; w = ln.head {
			s.removeLocked(w)
			all = append(all, w)
		}
	}
	s.mu.Unlock()
	slices.SortFunc(all, (*waiter).arrived)
	for _, w := range all {
		w.leaveQueue()
		w.answer(lease.Grant{}, engine.ErrShutdown)
	}
}

// DropMoved answers each waiter for a key that has left the group with a *engine.Moving. The one whose
// request is in flight follows with that.
func (s *Queues) DropMoved() {
	type dropped struct {
		waiter *waiter
		err    *engine.Moving
	}
	var all []dropped
	s.mu.Lock()
	for _, ln := range s.queues {
		for w := ln.head; w != nil; {
			this := w
			w = w.next
			if err := s.movingLocked(this); err != nil && ln.contender != this {
				all = append(all, dropped{this, err})
			}
		}
	}
	slices.SortFunc(all, func(a, b dropped) int { return a.waiter.arrived(b.waiter) })
	for _, d := range all {
		s.removeLocked(d.waiter)
	}
	s.mu.Unlock()
	for _, d := range all {
		d.waiter.leaveQueue()
		d.waiter.answer(lease.Grant{}, d.err)
	}
}

// movingLocked is the error of a waiter one of whose keys has left the group.
func (s *Queues) movingLocked(w *waiter) *engine.Moving {
	for _, key := range w.queue.keys {
		if w.work != nil {
			key = work.NameOf(key)
		}
		if o := s.engine.Ownership; o.Since(key) == 0 {
			return o.Moving(key)
		}
	}
	return nil
}

// arrived compares two waiters by their arrival.
func (w *waiter) arrived(o *waiter) int {
	return cmp.Compare(w.end-w.request.Wait, o.end-o.request.Wait)
}

// AwaitWork waits in the queue of a work's record; see work.Await.
func (s *Queues) AwaitWork(db int, record engine.Key, wait, runs time.Duration, contend work.Contend, done func(error)) (leave func()) {
	now := s.engine.Clock.Now()
	w := &waiter{
		waits: s, request: lease.LockRequest{DB: db, Key: record, Wait: wait}, work: &workWaiter{contend, now + runs},
		done: func(_ lease.Grant, err error) { done(err) }, end: now + wait, everRefused: true,
	}
	s.enter(nil, w)
	return w.leave
}

// Waiters is how many requests wait.
func (l *Queues) Waiters() int { return int(l.count.Load()) }

// IsUndecided reports whether the masters could not decide now, but may decide later, in this group.
func IsUndecided(err error) bool {
	var quorum *engine.NoQuorum
	var late *engine.Expired
	var busy *engine.Busy
	if errors.As(err, &quorum) && quorum.Moving != nil {
		return false // it waits for another group
	}
	return errors.As(err, &quorum) || errors.As(err, &late) || errors.As(err, &busy)
}
