// routedWait is a request that waits, also while the slots of its keys move to another group.
//
// It waits in the group of its keys. If they leave it, or are frozen when it comes, it is
// parked until the map changes, and begins again where they are then. Its place among the waiters is that
// of its new arrival.

package groups

import (
	"cmp"
	"errors"
	"sync"
	"time"

	"redlockd/pool"
	"redlockd/redlock"
)

// waitInTurn is the one wait of a request that waits several times, one after the other.
type waitInTurn struct {
	mu    sync.Mutex
	waitN int    // how many waits there were so far
	leave func() // of the last of them
	left  bool
}

// wait starts a wait that ends when the client leaves.
func (s *waitInTurn) wait(start func() (leave func())) {
	s.mu.Lock()
	s.waitN++
	number := s.waitN
	s.mu.Unlock()
	leave := start()
	s.mu.Lock()
	if number == s.waitN { // otherwise this wait is over, and another one runs
		s.leave = leave
	}
	left := s.left
	s.mu.Unlock()
	if left {
		leave() // harmless if it is over
	}
}

// onLeave ends the wait of a client that has left.
func (s *waitInTurn) onLeave() {
	s.mu.Lock()
	s.left = true
	leave := s.leave
	s.mu.Unlock()
	if leave != nil {
		leave()
	}
}

func (s *waitInTurn) hasLeft() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.left
}

// routedWait is one request that waits.
type routedWait struct {
	waitInTurn
	router  *Router
	keys    []redlock.Key
	end     time.Duration        // of the wait
	request *redlock.LockRequest // for people; nil: it is none for a lock
	start   func(b *redlock.Batch, left time.Duration) (leave func())
	fail    func(error)

	// Guarded by the lock of parking.
	number int // in order of arrival; 0 = it is not parked
	timer  pool.Timer
}

func newRoutedWait(r *Router, wait time.Duration, keys ...redlock.Key) *routedWait {
	return &routedWait{router: r, keys: keys, end: r.clock.Now() + wait}
}

// begin waits in the group that has the keys now, or until they are in one.
func (w *routedWait) begin(b *redlock.Batch) {
	if err := w.router.slots.frozen(w.keys[0], w.keys[1:]...); err != nil {
		w.park(err)
		return
	}
	w.wait(func() (leave func()) { return w.start(b, w.end-w.router.clock.Now()) })
}

// follows goes on waiting if a wait has ended because the keys have left the group.
func (w *routedWait) follows(err error) bool {
	moving, ok := errors.AsType[*redlock.Moving](err)
	if !ok || w.hasLeft() || w.router.clock.Now() >= w.end {
		return false
	}
	if moving.Moved {
		w.begin(nil)
	} else {
		w.park(err)
	}
	return true
}

// park waits for the next change of the map.
func (w *routedWait) park(err error) {
	left := w.end - w.router.clock.Now()
	if left <= 0 {
		w.fail(err)
		return
	}
	p := &w.router.parked
	w.wait(func() (leave func()) {
		if !p.add(w, left) {
			w.fail(redlock.ErrShutdown)
		}
		return func() {
			if p.remove(w) {
				w.fail(redlock.ErrLeft)
			}
		}
	})
	if w.router.slots.frozen(w.keys[0], w.keys[1:]...) == nil && p.remove(w) { // the map has changed meanwhile
		w.begin(nil)
	}
}

// onTimeout answers why nothing could be granted: whether the keys are held is not known.
func (w *routedWait) onTimeout() {
	if w.router.parked.remove(w) {
		w.fail(cmp.Or(w.router.slots.frozen(w.keys[0], w.keys[1:]...), redlock.ErrHeld))
	}
}
