// Who waits for a key in this daemon?
//
// Waiters of one key stand in a line, in order of arrival, and only the head of
// the line asks the masters (line.go): a thousand waiters cost them what one
// costs. A waiter is an entry and a timer, not a goroutine.
package redlock

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"redlockd/pool"
)

// place is where a release may be waited for.
type place struct {
	db  int
	key Key
}

// lineID tells lines apart: by their keys, whether they stand in a queue on the
// masters, too, and whether they want the lock at all.
type lineID struct {
	db    int
	keys  string
	fair  bool
	looks bool // they do not take the lock
}

// waiter is one request that waits. Its line's registry guards it.
type waiter struct {
	waits      *waiters
	line       *line // nil before it stands in one
	prev, next *waiter
	request    LockRequest
	done       LockDone
	end        time.Duration // of the wait, on the pool's clock
	timer      pool.Timer
	trouble    error // why it could not be decided before it stood in line
	stepping   error // a question of it has begun to make the writer a reader
	known      bool  // somebody else stands before it: it was refused, or others were faster in the queue
	over       bool  // out of the line, answered or about to be
}

// waiters are the lines of all keys.
type waiters struct {
	locker *Locker
	name   string       // of this daemon, in the queues
	count  atomic.Int64 // 0 lets every release pass without a look

	mu    sync.Mutex
	lines map[lineID]*line
	at    map[place][]*line // those that wait for a key, FAIR first
	stood int64             // waiters that took a place in a queue, numbers them
	ended bool
}

// Wait asks for a lock and, while somebody else holds the key, waits for it,
// r.Wait at most. done is called exactly once, as for Lock, or with ErrLeft once
// leave was called; a grant that comes after that is given back. When the time
// is over the answer is ErrHeld, or why the masters could not decide.
func (l *Locker) Wait(b *Batch, r LockRequest, done LockDone) (leave func()) {
	w := &waiter{waits: &l.waits, request: r, done: done, end: l.recent() + r.Wait}
	enter := l.waits.enter
	if r.Fair {
		enter = l.waits.enlist
	}
	if r.Token == "" {
		enter(b, w)
		return w.leave
	}
	// Its token may hold the key already: a repeat must not stand in line for
	// its own lock.
	l.Lock(b, r, func(g Grant, err error) {
		if errors.Is(err, ErrHeld) || undecidedError(err) {
			w.notes(err)
			w.known = errors.Is(err, ErrHeld)
			enter(nil, w)
			return
		}
		w.finishFirst(l, g, err)
	})
	return w.leave
}

// finishFirst answers a waiter that never stood in a line.
func (w *waiter) finishFirst(l *Locker, g Grant, err error) {
	l.waits.mu.Lock()
	left := w.over
	w.over = true
	l.waits.mu.Unlock()
	switch {
	case !left:
		w.done(g, err)
	case err == nil:
		l.unheard(g)
	}
}

// enter puts a waiter at the end of its line; the first one asks at once.
func (s *waiters) enter(b *Batch, w *waiter) {
	s.mu.Lock()
	if w.over { // it left while its token was asked for
		s.mu.Unlock()
		return
	}
	if err := s.roomLocked(w); err != nil {
		w.over = true
		s.mu.Unlock()
		w.done(Grant{}, err)
		return
	}
	ln := s.lineLocked(w)
	ln.insertLocked(w)
	s.count.Add(1)
	w.timer = s.locker.clock.AfterFunc(max(w.end-s.locker.clock.Now(), 0), w.timeOver)
	asks := ln.head == w && ln.asked == nil
	if asks {
		ln.askedLocked(w)
	}
	s.mu.Unlock()
	if asks {
		ln.ask(b, w)
	}
}

// roomLocked says why a request may not wait.
func (s *waiters) roomLocked(w *waiter) error {
	o := &s.locker.options
	ln := s.lines[w.lineID()]
	switch {
	case s.ended:
		return ErrShutdown
	case s.count.Load() >= int64(o.MaxWaiters):
		return &Busy{What: "waiters", Limit: o.MaxWaiters, Option: "--max-waiters"}
	case ln == nil:
		return nil
	case ln.length >= o.MaxWaitersPerKey:
		return &Busy{What: "waiters for this key", Limit: o.MaxWaitersPerKey, Option: "--max-waiters-per-key"}
	}
	// Somebody waits already, so the key is held. The first waiter finds out by
	// asking, see line.decided.
	if keys := s.cycleLocked(w); keys != nil {
		return &Deadlock{Keys: keys}
	}
	return nil
}

// lineID of a request: several keys are one line in whatever order they are named.
func (w *waiter) lineID() lineID {
	r := &w.request
	id := lineID{db: r.DB, keys: string(r.Key), fair: r.Fair, looks: r.looks}
	if len(r.More) > 0 {
		var names strings.Builder
		for _, key := range r.keys() {
			names.WriteString(string(key))
			names.WriteByte(0)
		}
		id.keys = names.String()
	}
	return id
}

// lineLocked finds or makes the waiter's line.
func (s *waiters) lineLocked(w *waiter) *line {
	id := w.lineID()
	if ln := s.lines[id]; ln != nil {
		return ln
	}
	ln := &line{waits: s, lineID: id, keys: w.request.keys(), group: s.locker.pool.Group(id.db)}
	if s.lines == nil {
		s.lines, s.at = map[lineID]*line{}, map[place][]*line{}
	}
	s.lines[id] = ln
	for _, key := range ln.keys {
		at := place{id.db, key}
		if id.fair {
			s.at[at] = append([]*line{ln}, s.at[at]...)
		} else {
			s.at[at] = append(s.at[at], ln)
		}
	}
	return ln
}

// forgetLocked drops a line.
func (s *waiters) forgetLocked(ln *line) {
	delete(s.lines, ln.lineID)
	for _, key := range ln.keys {
		at := place{ln.db, key}
		if s.at[at] = slices.DeleteFunc(s.at[at], func(other *line) bool { return other == ln }); len(s.at[at]) == 0 {
			delete(s.at, at)
		}
	}
}

// removeLocked takes a waiter out of its line, if it stands in one; it must step
// out of the queues and be answered afterwards.
func (s *waiters) removeLocked(w *waiter) {
	w.over = true
	if w.timer == nil {
		return // its token is being asked for
	}
	w.timer.Stop()
	s.count.Add(-1)
	if w.line != nil {
		w.line.unlinkLocked(w)
		w.line.dropIfDoneLocked()
	}
}

// leave ends a wait whose client has gone.
func (w *waiter) leave() {
	s := w.waits
	s.mu.Lock()
	if w.over {
		s.mu.Unlock()
		return
	}
	s.removeLocked(w)
	s.mu.Unlock()
	w.stepOut()
	w.done(Grant{}, ErrLeft)
}

// timeOver ends a wait. A question that is with the masters may still be
// answered yes, and then that is the answer.
func (w *waiter) timeOver() {
	s := w.waits
	s.mu.Lock()
	if w.over || w.line != nil && w.line.asked == w {
		s.mu.Unlock()
		return
	}
	s.removeLocked(w)
	verdict := w.verdict()
	s.mu.Unlock()
	w.stepOut()
	w.done(Grant{}, verdict)
}

// verdict is the answer of a wait that was in vain: "no" only if the last question
// for the key was refused, whoever of the line asked it.
func (w *waiter) verdict() error {
	switch {
	case w.line != nil && w.line.trouble != nil:
		return w.line.trouble
	case w.trouble != nil:
		return w.trouble
	case w.stepping != nil:
		return w.stepping
	case !w.known && (w.line == nil || !w.line.known):
		return w.waits.locker.noQuorum(&missing{}, "the wait was over before the masters had answered")
	}
	return ErrHeld
}

// notes what must not be forgotten when a later question is refused.
func (w *waiter) notes(err error) {
	if n := (*NoQuorum)(nil); errors.As(err, &n) && n.stepping {
		w.stepping = n
	}
}

// freed is told of every release through this daemon, as part of its batch: the
// head's question leaves in the same flush. That the release was a real one is
// not known yet; the masters decide.
func (s *waiters) freed(b *Batch, at place) {
	if s.count.Load() == 0 {
		return
	}
	type question struct {
		line   *line
		waiter *waiter
	}
	var room [2]question
	asks := room[:0]
	s.mu.Lock()
	for _, ln := range s.at[at] {
		if w := ln.handOverLocked(); w != nil {
			asks = append(asks, question{ln, w})
		}
	}
	s.mu.Unlock()
	for _, q := range asks {
		q.line.ask(b, q.waiter)
	}
}

// EndWaits begins the end of this daemon: it answers every waiter with ErrShutdown
// and lets nobody wait any more, and holds that end from here on are not released.
func (l *Locker) EndWaits() {
	l.holds.draining.Store(true)
	s := &l.waits
	s.mu.Lock()
	s.ended = true
	var all []*waiter
	for _, ln := range s.lines {
		for w := ln.head; w != nil; w = ln.head {
			s.removeLocked(w)
			all = append(all, w)
		}
	}
	s.mu.Unlock()
	slices.SortFunc(all, func(a, b *waiter) int { return cmp.Compare(a.end-a.request.Wait, b.end-b.request.Wait) }) // as they came
	for _, w := range all {
		w.stepOut()
		w.done(Grant{}, ErrShutdown)
	}
	l.endWorkWaits()
}

// over tells whether nobody may wait any more.
func (s *waiters) over() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

// Waiters is how many requests wait.
func (l *Locker) Waiters() int { return int(l.waits.count.Load()) }

// undecidedError: the masters could not decide now, they may later.
func undecidedError(err error) bool {
	var quorum *NoQuorum
	var late *Expired
	var busy *Busy
	return errors.As(err, &quorum) || errors.As(err, &late) || errors.As(err, &busy)
}
