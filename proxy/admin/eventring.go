package admin

// eventring.go stores the last events of locks.

import (
	"sync"

	"redlockd/redlock"
)

// maxEvents is how many events are kept. A page reads four times a second, so it misses
// some of more than a thousand a second, and receives their number.
const maxEvents = 256

// eventRing contains the last events, numbered from 1.
type eventRing struct {
	mu   sync.Mutex
	ring [maxEvents]redlock.Event
	last uint64
}

// add is called for one event at a time.
func (n *eventRing) add(e redlock.Event) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.last++
	n.ring[n.last%maxEvents] = e
}

// after returns the events after a given one, the oldest first, the number of the last
// one, and how many were overwritten already.
func (n *eventRing) after(seen uint64) (events []redlock.Event, last uint64, missed uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	from := seen + 1
	if n.last >= maxEvents && from <= n.last-maxEvents {
		from = n.last - maxEvents + 1
		missed = from - seen - 1
	}
	for i := from; i <= n.last; i++ {
		events = append(events, n.ring[i%maxEvents])
	}
	return events, n.last, missed
}
