package embedded

import (
	"container/heap"
	"sync"
	"time"

	"redlockd/redlock/due"
)

// expiries are the keys that may expire, ordered by the moment at which each must be
// checked next. That moment is never later than the key's end, and may be earlier: a key
// that was prolonged keeps its place until it is checked.
type expiries struct {
	mu     sync.Mutex
	queue  due.Queue[*expiry]
	byKey  map[string]*expiry
	checks int // keys that due has returned so far
}

// expiry is one key in the queue.
type expiry struct {
	key   string
	at    int64 // ms of the master's own time
	index int
}

// DueAt is only compared.
func (e *expiry) DueAt() time.Duration { return time.Duration(e.at) }
func (e *expiry) SetIndex(index int)   { e.index = index }

// note has the key checked at this moment at the latest.
func (e *expiries) note(key string, at int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch known := e.byKey[key]; {
	case known == nil:
		e.byKey[key] = &expiry{key: key, at: at}
		heap.Push(&e.queue, e.byKey[key])
	case at < known.at:
		known.at = at
		heap.Fix(&e.queue, known.index)
	}
}

// recheck has those of the keys checked at once that are known: they were deleted.
func (e *expiries) recheck(keys []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, key := range keys {
		if known := e.byKey[key]; known != nil {
			known.at = 0
			heap.Fix(&e.queue, known.index)
		}
	}
}

// due removes and returns the keys whose moment has come.
func (e *expiries) due(now int64) (keys []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for len(e.queue) > 0 && e.queue[0].at <= now {
		one := heap.Pop(&e.queue).(*expiry)
		delete(e.byKey, one.key)
		keys = append(keys, one.key)
	}
	e.checks += len(keys)
	return keys
}
