// This file serialises the operations of one token.

package lease

import (
	"sync"

	"redlockd/redlock/engine"
)

// perTokenQueue makes the operations of one (key, token) wait for an acquire of it that
// is in flight in this daemon. A second ballot would otherwise count copies that the
// first one is about to take back.
type perTokenQueue struct {
	mu      sync.Mutex
	waiting map[engine.LeaseID][]queuedOperation
}

// idle reports whether no acquire with a caller's token is in flight. This is the usual
// case, in which no operation has to wait.
func (t *perTokenQueue) idle() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.waiting) == 0
}

// busy reports whether an acquire of one of these is in flight.
func (t *perTokenQueue) busy(ids []engine.LeaseID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, id := range ids {
		if _, busy := t.waiting[id]; busy {
			return true
		}
	}
	return false
}

// queuedOperation is an operation that waits. If it holds, the next ones wait until it
// has left.
type queuedOperation struct {
	run   func(b *engine.Batch)
	holds bool
}

// enter runs next now, as part of batch b, or by itself once the acquire in flight is
// over.
func (t *perTokenQueue) enter(id engine.LeaseID, b *engine.Batch, next queuedOperation) {
	t.mu.Lock()
	queue, busy := t.waiting[id]
	switch {
	case busy:
		t.waiting[id] = append(queue, next)
		t.mu.Unlock()
		return
	case next.holds:
		if t.waiting == nil {
			t.waiting = map[engine.LeaseID][]queuedOperation{}
		}
		t.waiting[id] = nil
	}
	t.mu.Unlock()
	next.run(b)
}

// leave ends an acquire and starts the operations that waited, up to the next acquire.
func (t *perTokenQueue) leave(id engine.LeaseID) {
	for {
		t.mu.Lock()
		queue := t.waiting[id]
		if len(queue) == 0 {
			delete(t.waiting, id)
			t.mu.Unlock()
			return
		}
		next := queue[0]
		t.waiting[id] = queue[1:]
		t.mu.Unlock()
		next.run(nil)
		if next.holds {
			return
		}
	}
}
