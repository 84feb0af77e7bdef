// This file lists the requests that wait in this daemon.
//
// Waiters of one key stand in a wait queue, in order of arrival. A waiter is an entry and a
// timer, not a goroutine.

package wait

import (
	"cmp"
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

// waitList is the requests that wait in this daemon, by the keys that they wait for.
type waitList struct {
	engine *engine.Engine
	leases *lease.Leases
	count  atomic.Int64 // at 0 a release does not take the lock

	maxPerKey int    // bounds the requests that wait for one key
	name      string // of this daemon, in the queues on the masters

	mu     sync.Mutex
	queues map[queueID]*waitQueue
	byKey  map[dbKey][]*waitQueue // the queues that wait for a key, FAIR first
	edges  map[*waiter]*waiterEdges
	closed bool
	heads  int64     // number of the last ticket of a queue without FAIR
	busy   busyTable // of queues that have ended
	// refusing: the daemon is about to end, and admits no new waiters.
	refusing bool
}

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
	work     bool // they request work, and the key is its record
}

// waiter is one request that waits. The mutex of its list guards it.
type waiter struct {
	list        *waitList
	queue       *waitQueue // nil until the waiter is in a queue
	prev, next  *waiter
	request     Request
	work        *workWaiter   // what it requests instead of a lock; nil: a lock
	ticket      *lease.Ticket // in the queues on the masters, nil = none is requested
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

// waitQueue holds the waiters of one key. The mutex of its list guards all of it.
type waitQueue struct {
	list *waitList
	queueID
	keys  []engine.Key
	group *pool.Group

	head, tail  *waiter
	length      int
	contender   *waiter // whose request is in flight
	hinted      bool    // the key may have become free since the request
	failures    int32   // undecided requests in a row …
	lastErr     error   // … and why the last of them was not decided, nil if it was
	everDecided bool    // a request has been decided
	reads       bool    // the head's requests are scripts, see foreignLocked
	contested   bool    // others contend for the key: the head's requests are scripts that look at the queue of FAIR
	passed      passes
	busy        busyTime

	runsUntil time.Duration // when the attempt that runs has timed out; forever in a queue for locks

	refreshTimer pool.Timer // of FAIR, see refreshTickets
	timer        pool.Timer // nil until it is first set
	wakeAt       time.Duration
	watch        queueWatch
}

// insertLocked puts a waiter at the end, or where its ticket belongs.
func (wq *waitQueue) insertLocked(w *waiter) {
	after := wq.tail
	for wq.fair && after != nil && after.ticket.Number > w.ticket.Number {
		after = after.prev
	}
	w.queue, w.prev = wq, after
	if after == nil {
		w.next, wq.head = wq.head, w
	} else {
		w.next, after.next = after.next, w
	}
	if w.next == nil {
		wq.tail = w
	} else {
		w.next.prev = w
	}
	wq.length++
}

func (wq *waitQueue) unlinkLocked(w *waiter) {
	if w.prev == nil {
		wq.head = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		wq.tail = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.prev, w.next = nil, nil
	wq.length--
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

// queueLocked is the queue of a waiter, which may be a new one.
func (l *waitList) queueLocked(w *waiter) *waitQueue {
	id := w.queueID()
	if ln := l.queues[id]; ln != nil {
		return ln
	}
	ln := &waitQueue{list: l, queueID: id, keys: w.request.SortedKeys(), group: l.engine.Pool.Group(id.db), runsUntil: forever}
	ln.busy = l.busy.find(id.db, id.keys, l.engine.Recent())
	l.queues[id] = ln
	for _, key := range ln.keys {
		at := dbKey{id.db, key}
		if id.fair {
			l.byKey[at] = append([]*waitQueue{ln}, l.byKey[at]...)
		} else {
			l.byKey[at] = append(l.byKey[at], ln)
		}
	}
	return ln
}

func (l *waitList) forgetLocked(ln *waitQueue) {
	delete(l.queues, ln.queueID)
	l.busy.keep(ln.db, ln.queueID.keys, ln.busy, l.engine.Recent())
	for _, key := range ln.keys {
		at := dbKey{ln.db, key}
		if l.byKey[at] = slices.DeleteFunc(l.byKey[at], func(other *waitQueue) bool { return other == ln }); len(l.byKey[at]) == 0 {
			delete(l.byKey, at)
		}
	}
}

// Waiting is one request that waits.
type Waiting struct {
	Keys      []engine.Key // the keys that it waits for
	Mode      lease.Kind
	Reenters  bool
	Fair      bool
	Requester lease.Requester
	Place     int           // in its wait queue in this daemon, from 1
	Since     time.Duration // the time that it has waited
	Left      time.Duration // the time that it will wait at most
}

// Waiting lists the requests that wait for a wanted key of a database, at most limit of
// them, those that have waited longest first. all is how many there are. It walks over
// all wait queues once; wanted must be quick.
func (l *waitList) Waiting(db int, wanted func(engine.Key) bool, limit int) (list []Waiting, all int) {
	now := l.engine.Clock.Now()
	l.mu.Lock()
	for _, ln := range l.queues {
		if ln.db != db || ln.work || !slices.ContainsFunc(ln.keys, wanted) {
			continue
		}
		all += ln.length
		n := 0
		for w := ln.head; w != nil && n < limit; w = w.next {
			n++
			list = append(list, Describe(&w.request, ln.keys, n, w.end, now))
		}
		if len(list) > 2*limit {
			list = oldest(list, limit)
		}
	}
	l.mu.Unlock()
	return oldest(list, limit), all
}

// Describe is a request that waits until end.
func Describe(r *Request, keys []engine.Key, place int, end, now time.Duration) Waiting {
	one := Waiting{
		Keys: keys, Mode: r.Kind(), Reenters: lease.LevelOwner(r.Mode) != "", Fair: r.Fair, Place: place,
		Since: max(0, now-(end-r.Wait)), Left: max(0, end-now),
	}
	if r.Requester != nil {
		one.Requester = *r.Requester
	}
	return one
}

func oldest(list []Waiting, limit int) []Waiting {
	slices.SortFunc(list, func(a, b Waiting) int {
		return cmp.Or(-cmp.Compare(a.Since, b.Since), slices.Compare(a.Keys, b.Keys), cmp.Compare(a.Place, b.Place))
	})
	return list[:min(len(list), limit)]
}

// CountAt counts the requests that wait for one key.
func (l *waitList) CountAt(db int, key engine.Key) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, ln := range l.byKey[dbKey{db, key}] {
		n += ln.length
	}
	return n
}

// Waiters counts the requests that wait.
func (l *waitList) Waiters() int { return int(l.count.Load()) }
