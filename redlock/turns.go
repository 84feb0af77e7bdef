// Who goes first when one token asks twice?
package redlock

import "sync"

// turns lets the operations of one (key, token) wait for an acquire of it that
// is in flight in this daemon: a second attempt would otherwise count copies
// that the first one is about to take back.
type turns struct {
	mu      sync.Mutex
	waiting map[lockID][]turn
}

// idle tells whether no acquire with a caller's token is in flight: the usual
// case, in which nobody has to be asked for a turn.
func (t *turns) idle() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.waiting) == 0
}

// taken tells whether an acquire of one of these is in flight.
func (t *turns) taken(ids []lockID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, id := range ids {
		if _, busy := t.waiting[id]; busy {
			return true
		}
	}
	return false
}

// turn is something that waits; it holds the next ones back until left.
type turn struct {
	run   func(b *Batch)
	holds bool
}

// take runs t now, as part of batch b, or by itself when the acquire in flight
// is over.
func (t *turns) take(id lockID, b *Batch, next turn) {
	t.mu.Lock()
	queue, busy := t.waiting[id]
	switch {
	case busy:
		t.waiting[id] = append(queue, next)
		t.mu.Unlock()
		return
	case next.holds:
		if t.waiting == nil {
			t.waiting = map[lockID][]turn{}
		}
		t.waiting[id] = nil
	}
	t.mu.Unlock()
	next.run(b)
}

// leave ends an acquire's turn and starts what waited, up to the next acquire.
func (t *turns) leave(id lockID) {
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
