package admin

// news.go answers: what has just happened to which lock?

import (
	"sync"

	"redlockd/redlock"
)

// mostNews is how many events are kept; who looks four times a second misses some
// of more than a thousand a second, and is told how many.
const mostNews = 256

// news are the last events, numbered from 1.
type news struct {
	mu   sync.Mutex
	ring [mostNews]redlock.Event
	last uint64
}

// hear is called for one event at a time.
func (n *news) hear(e redlock.Event) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.last++
	n.ring[n.last%mostNews] = e
}

// after gives what came after an event, the oldest first, the number of the last
// one, and how many are gone already.
func (n *news) after(seen uint64) (events []redlock.Event, last uint64, missed uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	from := seen + 1
	if n.last >= mostNews && from <= n.last-mostNews {
		from = n.last - mostNews + 1
		missed = from - seen - 1
	}
	for i := from; i <= n.last; i++ {
		events = append(events, n.ring[i%mostNews])
	}
	return events, n.last, missed
}
