package embedded

import "container/heap"

// expiries are the keys that may expire, ordered by the moment at which each must be
// checked next. That moment is never later than the key's end, and may be earlier: a key
// that was prolonged keeps its place until it is checked.
type expiries struct {
	order  []*expiry
	byKey  map[string]*expiry
	checks int // keys that due has returned so far
}

// expiry is one key in the order.
type expiry struct {
	key string
	at  int64 // ms of the master's own time
	pos int   // in the order
}

// note has the key checked at this moment at the latest.
func (e *expiries) note(key string, at int64) {
	switch known := e.byKey[key]; {
	case known == nil:
		heap.Push(e, &expiry{key: key, at: at})
	case at < known.at:
		known.at = at
		heap.Fix(e, known.pos)
	}
}

// recheck has the key checked at once if it is known: it was deleted.
func (e *expiries) recheck(key string) {
	if e.byKey[key] != nil {
		e.note(key, 0)
	}
}

// due removes and returns the keys whose moment has come.
func (e *expiries) due(now int64) (keys []string) {
	for len(e.order) > 0 && e.order[0].at <= now {
		keys = append(keys, heap.Pop(e).(*expiry).key)
	}
	e.checks += len(keys)
	return keys
}

var _ heap.Interface = (*expiries)(nil)

func (e *expiries) Len() int           { return len(e.order) }
func (e *expiries) Less(i, j int) bool { return e.order[i].at < e.order[j].at }

func (e *expiries) Swap(i, j int) {
	e.order[i], e.order[j] = e.order[j], e.order[i]
	e.order[i].pos, e.order[j].pos = i, j
}

// Push appends a new key.
func (e *expiries) Push(x any) {
	one := x.(*expiry)
	one.pos = len(e.order)
	e.order = append(e.order, one)
	e.byKey[one.key] = one
}

// Pop removes the last key.
func (e *expiries) Pop() any {
	last := len(e.order) - 1
	one := e.order[last]
	e.order[last] = nil
	e.order = e.order[:last]
	delete(e.byKey, one.key)
	return one
}
