// routedWait is a request that waits, also while the slots of its keys move to another group.
//
// It waits in the group of its keys. If they leave it, or are frozen when it comes, it is
// parked until the map changes, and begins again where they are then. Its place among the waiters is that
// of its new arrival.

package groups

import (
	"cmp"
	"errors"
	"slices"
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
func (w *waitInTurn) wait(start func() (leave func())) {
	w.mu.Lock()
	w.waitN++
	number := w.waitN
	w.mu.Unlock()
	leave := start()
	w.mu.Lock()
	if number == w.waitN { // otherwise this wait is over, and another one runs
		w.leave = leave
	}
	left := w.left
	w.mu.Unlock()
	if left {
		leave() // harmless if it is over
	}
}

// onLeave ends the wait of a client that has left.
func (w *waitInTurn) onLeave() {
	w.mu.Lock()
	w.left = true
	leave := w.leave
	w.mu.Unlock()
	if leave != nil {
		leave()
	}
}

func (w *waitInTurn) hasLeft() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.left
}

// routedWait is one request that waits.
type routedWait struct {
	waitInTurn
	slots   *Map
	parked  *parking
	keys    []redlock.Key
	end     time.Duration        // of the wait
	request *redlock.LockRequest // for people; nil: it is none for a lock
	start   func(b *redlock.Batch, left time.Duration) (leave func())
	fail    func(error)

	// Guarded by the lock of parking.
	number int // in order of arrival
	timer  pool.Timer
}

func newRoutedWait(m *Map, p *parking, wait time.Duration, keys ...redlock.Key) *routedWait {
	return &routedWait{slots: m, parked: p, keys: keys, end: m.clock.Now() + wait}
}

// begin waits in the group that has the keys now, or until they are in one.
func (w *routedWait) begin(b *redlock.Batch) {
	if err := w.slots.frozen(w.keys[0], w.keys[1:]...); err != nil {
		w.park(err)
		return
	}
	w.wait(func() (leave func()) { return w.start(b, w.end-w.slots.clock.Now()) })
}

// follows goes on waiting if a wait has ended because the keys have left the group.
func (w *routedWait) follows(err error) bool {
	moving, ok := errors.AsType[*redlock.Moving](err)
	if !ok || w.hasLeft() || w.slots.clock.Now() >= w.end {
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
	left := w.end - w.slots.clock.Now()
	if left <= 0 {
		w.fail(err)
		return
	}
	p := w.parked
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
	if w.slots.frozen(w.keys[0], w.keys[1:]...) == nil && p.remove(w) { // the map has changed meanwhile
		w.begin(nil)
	}
}

// onTimeout answers why nothing could be granted: whether the keys are held is not known.
func (w *routedWait) onTimeout() {
	if w.parked.remove(w) {
		w.fail(cmp.Or(w.slots.frozen(w.keys[0], w.keys[1:]...), redlock.ErrHeld))
	}
}

// parking has the requests that wait for a change of the map.
type parking struct {
	mu     sync.Mutex
	last   int
	closed bool
	all    map[*routedWait]struct{}
}

// add reports false if the daemon stops.
func (p *parking) add(w *routedWait, left time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	if p.all == nil {
		p.all = map[*routedWait]struct{}{}
	}
	p.last++
	w.number, p.all[w] = p.last, struct{}{}
	w.timer = w.slots.clock.AfterFunc(left, w.onTimeout)
	return true
}

// remove reports whether the request was parked: its next step is the caller's.
func (p *parking) remove(w *routedWait) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.removeLocked(w)
}

func (p *parking) removeLocked(w *routedWait) bool {
	if _, parked := p.all[w]; !parked {
		return false
	}
	delete(p.all, w)
	w.timer.Stop()
	return true
}

// takeLocked removes all requests, and returns them in order of arrival.
func (p *parking) takeLocked() (all []*routedWait) {
	for w := range p.all {
		all = append(all, w)
	}
	slices.SortFunc(all, func(a, b *routedWait) int { return cmp.Compare(a.number, b.number) })
	for _, w := range all {
		p.removeLocked(w)
	}
	return all
}

// wake lets all requests begin again; those whose keys are frozen still are parked again.
func (p *parking) wake() {
	p.mu.Lock()
	all := p.takeLocked()
	p.mu.Unlock()
	for _, w := range all {
		w.begin(nil)
	}
}

// end answers all requests with ErrShutdown.
func (p *parking) end() {
	p.mu.Lock()
	p.closed = true
	all := p.takeLocked()
	p.mu.Unlock()
	for _, w := range all {
		w.fail(redlock.ErrShutdown)
	}
}

func (p *parking) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.all)
}

// waiting lists the requests for locks, see redlock.Locker.
func (p *parking) waiting(db int, wanted func(redlock.Key) bool, most int) (list []redlock.Waiting, all int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for w := range p.all {
		q := w.request
		if q == nil || q.DB != db || !slices.ContainsFunc(w.keys, wanted) {
			continue
		}
		all++
		list = append(list, redlock.DescribeWait(q, w.keys, w.number, w.end, w.slots.clock.Now()))
	}
	slices.SortFunc(list, func(a, b redlock.Waiting) int { return cmp.Compare(a.Place, b.Place) })
	for i := range list {
		list[i].Place = i + 1
	}
	return list[:min(len(list), most)], all
}
