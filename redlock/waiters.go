// Who waits for a key in this daemon?
//
// Waiters of one key stand in a line, in order of arrival, and only the head of
// the line asks the masters (line.go): a thousand waiters cost them what one
// costs. A waiter is an entry and a timer, not a goroutine.
package redlock

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"redlockd/pool"
)

// place is what is waited for.
type place struct {
	db  int
	key Key
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
	trouble    error // why the last question was not decided; nil = it was refused
	over       bool  // out of the line, answered or about to be
}

// waiters are the lines of all keys.
type waiters struct {
	locker *Locker
	count  atomic.Int64 // 0 lets every release pass without a look

	mu    sync.Mutex
	lines map[place]*line
	ended bool
}

// Wait asks for a lock and, while somebody else holds the key, waits for it,
// r.Wait at most. done is called exactly once, as for Lock, or with ErrLeft once
// leave was called; a grant that comes after that is given back. When the time
// is over the answer is ErrHeld, or why the masters could not decide.
func (l *Locker) Wait(b *Batch, r LockRequest, done LockDone) (leave func()) {
	w := &waiter{waits: &l.waits, request: r, done: done, end: l.recent() + r.Wait}
	if r.Token == "" {
		l.waits.enter(b, w)
		return w.leave
	}
	// Its token may hold the key already: a repeat must not stand in line for
	// its own lock.
	l.Lock(b, r, func(g Grant, err error) {
		if errors.Is(err, ErrHeld) || undecidedError(err) {
			l.waits.enter(nil, w)
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
	case err == nil && g.Fresh:
		l.GiveBack(g)
	}
}

// enter puts a waiter at the end of its line; the first one asks at once.
func (s *waiters) enter(b *Batch, w *waiter) {
	s.mu.Lock()
	if w.over { // it left while its token was asked for
		s.mu.Unlock()
		return
	}
	ln, err := s.lineLocked(w)
	if err != nil {
		w.over = true
		s.mu.Unlock()
		w.done(Grant{}, err)
		return
	}
	ln.appendLocked(w)
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

// lineLocked finds or makes the waiter's line, or says why it may not wait.
func (s *waiters) lineLocked(w *waiter) (*line, error) {
	o := &s.locker.options
	at := place{w.request.DB, w.request.Key}
	ln := s.lines[at]
	switch {
	case s.ended:
		return nil, ErrShutdown
	case s.count.Load() >= int64(o.MaxWaiters):
		return nil, &Busy{What: "waiters", Limit: o.MaxWaiters, Option: "--max-waiters"}
	case ln == nil:
		ln = &line{waits: s, place: at, group: s.locker.pool.Group(at.db)}
		if s.lines == nil {
			s.lines = map[place]*line{}
		}
		s.lines[at] = ln
		return ln, nil
	case ln.length >= o.MaxWaitersPerKey:
		return nil, &Busy{What: "waiters for this key", Limit: o.MaxWaitersPerKey, Option: "--max-waiters-per-key"}
	}
	// Somebody waits already, so the key is held. The first waiter finds out by
	// asking, see line.decided.
	if keys := s.cycleLocked(w); keys != nil {
		return nil, &Deadlock{Keys: keys}
	}
	return ln, nil
}

// removeLocked takes a waiter out of its line; it must be answered afterwards.
func (s *waiters) removeLocked(w *waiter) {
	w.over = true
	w.timer.Stop()
	w.line.unlinkLocked(w)
	s.count.Add(-1)
	w.line.dropIfDoneLocked()
}

// leave ends a wait whose client has gone.
func (w *waiter) leave() {
	s := w.waits
	s.mu.Lock()
	if w.over {
		s.mu.Unlock()
		return
	}
	if w.line == nil { // its token is being asked for
		w.over = true
	} else {
		s.removeLocked(w)
	}
	s.mu.Unlock()
	w.done(Grant{}, ErrLeft)
}

// timeOver ends a wait. A question that is with the masters may still be
// answered yes, and then that is the answer.
func (w *waiter) timeOver() {
	s := w.waits
	s.mu.Lock()
	if w.over || w.line.asked == w {
		s.mu.Unlock()
		return
	}
	s.removeLocked(w)
	s.mu.Unlock()
	w.done(Grant{}, w.verdict())
}

// verdict is the answer of a wait that was in vain.
func (w *waiter) verdict() error {
	if w.trouble != nil {
		return w.trouble
	}
	return ErrHeld
}

// freed is told of every release through this daemon, as part of its batch: the
// head's question leaves in the same flush. That the release was a real one is
// not known yet; the masters decide.
func (s *waiters) freed(b *Batch, at place) {
	if s.count.Load() == 0 {
		return
	}
	s.mu.Lock()
	ln := s.lines[at]
	if ln == nil {
		s.mu.Unlock()
		return
	}
	w := ln.handOverLocked()
	s.mu.Unlock()
	if w != nil {
		ln.ask(b, w)
	}
}

// EndWaits answers every waiter with ErrShutdown and lets nobody wait any more.
func (l *Locker) EndWaits() {
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
	for _, w := range all {
		w.done(Grant{}, ErrShutdown)
	}
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
