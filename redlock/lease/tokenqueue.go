// This file serialises the operations of one token.

package lease

import (
	"sync"
	"sync/atomic"

	"redlockd/redlock/engine"
)

// perTokenQueue makes the operations of one (key, token) wait for an acquire of it that
// is in flight in this daemon. A second ballot would otherwise count copies that the
// first one is about to take back.
type perTokenQueue struct {
	mu      sync.Mutex
	waiting map[engine.LeaseID]tokenTurn
}

// tokenTurn is an acquire in flight.
type tokenTurn struct {
	queue    []queuedOperation // that wait for it
	starting bool              // leave is starting it now, and goes on if it ends meanwhile
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

// turnEnd is what the end of an acquire's turn waits for, besides the answer to its caller: masters
// that answer after a refused upgrade. Each may have made the reader the writer, and the next
// operation would move the expiry by which the undo finds that.
type turnEnd struct{ late atomic.Int32 }

func (t *turnEnd) await(answers int) { t.late.Add(int32(answers)) }

// isOver is called for the answer to the caller and for each late one, and is true for the last.
func (t *turnEnd) isOver() bool { return t.late.Add(-1) < 0 }

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
	turn, busy := t.waiting[id]
	switch {
	case busy:
		turn.queue = append(turn.queue, next)
		t.waiting[id] = turn
		t.mu.Unlock()
		return
	case next.holds:
		if t.waiting == nil {
			t.waiting = map[engine.LeaseID]tokenTurn{}
		}
		t.waiting[id] = tokenTurn{}
	}
	t.mu.Unlock()
	next.run(b)
}

// leave ends an acquire and starts the operations that waited, up to the next acquire that is in
// flight then. Without a master an acquire ends while it starts: the loop goes on with the next one,
// so that a long queue takes no deep stack.
func (t *perTokenQueue) leave(id engine.LeaseID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	turn := t.waiting[id]
	for again := !turn.starting; again; again = !turn.starting {
		if len(turn.queue) == 0 {
			delete(t.waiting, id)
			return
		}
		next := turn.queue[0]
		t.waiting[id] = tokenTurn{queue: turn.queue[1:], starting: next.holds}
		t.mu.Unlock()
		next.run(nil)
		t.mu.Lock()
		turn = t.waiting[id]
	}
	turn.starting = false
	t.waiting[id] = turn
}
