// Tracker: a second connection to one master, with CLIENT TRACKING in OPTIN mode, that
// reads only the keys that have a waiter, are held with HOLD or are tracked for clients.
//
// PTTL is sent right behind CLIENT CACHING YES: the answer is the state of the key, and
// the master announces every change after it, once. Between the two there is
// no gap. No decision depends on the tracker.

package notify

import (
	"context"
	"sync"
	"time"

	"redlockd/pool/wire"
)

const (
	// maxQueries is how many keys one exchange reads at most.
	maxQueries = 128
	// trackerRetry is the pause after a tracker's connection failed.
	trackerRetry = time.Second
)

// keyQuery is a key that a watcher wants to be tracked.
type keyQuery struct {
	key     string
	round   uint64
	watcher Watcher
}

type tracker struct {
	keys   *Keys
	index  int
	master wire.Master

	mu      sync.Mutex
	queue   []keyQuery
	running bool
	closed  bool
	link    wire.Link // used by the running task alone, closed by any goroutine
	retryAt time.Duration
}

// enqueue queues a query. What does not fit is dropped: the watcher polls.
func (t *tracker) enqueue(q keyQuery) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || len(t.queue) >= t.keys.MaxQueue {
		return
	}
	t.queue = append(t.queue, q)
	t.running = t.running || t.keys.Submit(t.run) == nil
}

// run answers what is queued; there is one at a time.
func (t *tracker) run() {
	for {
		t.mu.Lock()
		n := min(len(t.queue), maxQueries)
		if n == 0 || t.closed {
			t.queue, t.running = nil, false
			t.mu.Unlock()
			return
		}
		batch := t.queue[:n:n]
		t.queue = t.queue[n:]
		link, paused := t.link, t.keys.Clock.Now() < t.retryAt
		t.mu.Unlock()
		if link == nil && !paused {
			link = t.dial()
		}
		if link != nil {
			t.exchange(link, batch)
		}
	}
}

// dial opens the connection, or sets the time of the next attempt.
func (t *tracker) dial() wire.Link {
	k := t.keys
	ctx, cancel := context.WithTimeout(context.Background(), k.Timeout)
	defer cancel()
	link, err := k.Dial(ctx, t.master, k.DB, func(keys []string) {
		k.changed(t.index, keys)
	})
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		t.retryAt = k.Clock.Now() + trackerRetry
		k.Logger.Debug("tracking of master unavailable; waiters poll it", "master", t.master.Name, "err", err.Error())
		return nil
	}
	if t.closed {
		link.Close()
		return nil
	}
	t.link = link
	return link
}

// exchange queries a batch of keys and delivers the answers.
func (t *tracker) exchange(link wire.Link, batch []keyQuery) {
	tracked, each := !t.keys.Untracked, 1 // commands for a key
	if tracked {
		each = 2
	}
	commands := make([]wire.Command, 0, each*len(batch))
	for _, q := range batch {
		if tracked {
			commands = append(commands, wire.Words("CLIENT", "CACHING", "YES"))
		}
		commands = append(commands, wire.Words("PTTL", q.key))
	}
	replies, err := wire.Ask(link, commands...)
	if err != nil {
		t.drop(link)
		return
	}
	for i, q := range batch {
		r := replies[each*i+each-1]
		if r.Kind != wire.ReplyInt {
			continue
		}
		left := time.Duration(min(r.Int, 1<<40)) * time.Millisecond
		switch r.Int {
		case -2:
			left = 0
		case -1:
			left = -1
		}
		q.watcher.Remains(t.index, q.round, left, tracked && replies[each*i].Err == nil)
	}
}

// drop ends a connection that failed. What it tracked is not announced any more.
func (t *tracker) drop(link wire.Link) {
	t.mu.Lock()
	if t.link == link {
		t.link = nil
		t.retryAt = t.keys.Clock.Now() + trackerRetry
	}
	t.mu.Unlock()
	link.Close()
}

func (t *tracker) close() {
	t.mu.Lock()
	t.closed = true
	link := t.link
	t.link = nil
	t.mu.Unlock()
	if link != nil {
		link.Close()
	}
}
