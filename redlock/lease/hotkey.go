// hotKeys bounds how many tries for one key are sent to the masters at once.
//
// Without a bound the tries for a hot key fill the queues of all masters, and most of them are
// refused for the same reason. At most maxTries of this daemon are in flight for one key;
// further ones wait in the daemon. When a try has ended, one of them is sent for all that had
// arrived by then. If the key is held, or this try gets it, the key is held after the others'
// requests, so they are refused as well.
//
// Requests with a caller's TOKEN are sent by themselves, since the token may hold the lock
// already. So are requests for several keys, and those that WAIT, of which only one per key is
// in flight.

package lease

import (
	"errors"
	"sync"
	"sync/atomic"

	"redlockd/redlock/engine"
)

const (
	// maxTries of a key are in flight: enough that one of them meets the key soon after
	// it was freed, few beside the hundreds of commands that a flush takes.
	maxTries = 16
	// tryCounts is the number of counters; keys that share one share its bound.
	tryCounts = 4096
)

// hotKeys counts in constant memory; only tries that wait are kept one by one.
type hotKeys struct {
	seed    uint32                  // not known to clients: they cannot choose keys that share a counter
	tries   [tryCounts]atomic.Int32 // in flight
	waiting atomic.Int32            // in all lists below

	mu    sync.Mutex
	lists map[uint32][]*acquireCall // that wait, by their counter, in the order of arrival
}

func (h *hotKeys) counter(c *acquireCall) uint32 {
	return fnv1a(h.seed, string(c.request.Key)) % tryCounts
}

func (h *hotKeys) enter(b *engine.Batch, c *acquireCall) {
	i := h.counter(c)
	if h.tries[i].Add(1) <= maxTries {
		c.start(b)
		return
	}
	h.mu.Lock()
	h.lists[i] = append(h.lists[i], c)
	h.waiting.Add(1)
	h.mu.Unlock()
	// Its count is given back only now. A try that ends later finds it in the list; if so many
	// have ended before that there is room, it is sent here.
	if h.tries[i].Add(-1) < maxTries {
		h.next(i)
	}
}

func (h *hotKeys) leave(c *acquireCall) {
	i := h.counter(c)
	h.tries[i].Add(-1)
	if h.waiting.Load() > 0 {
		h.next(i)
	}
}

// next sends the first try that waits, for all that wait for the same key.
func (h *hotKeys) next(i uint32) {
	h.mu.Lock()
	list := h.lists[i]
	if len(list) == 0 {
		h.mu.Unlock()
		return
	}
	first := list[0]
	var rest []*acquireCall
	for _, c := range list[1:] {
		if c.request.DB == first.request.DB && c.request.Key == first.request.Key {
			first.others = append(first.others, c)
		} else {
			rest = append(rest, c)
		}
	}
	if h.lists[i] = rest; len(rest) == 0 {
		delete(h.lists, i)
	}
	h.waiting.Add(-int32(1 + len(first.others)))
	h.mu.Unlock()
	h.tries[i].Add(1)
	first.start(nil)
}

// answerOthers gives the waiting calls the outcome of the try that was sent for them. If the
// outcome means nothing for the key, such as a lease that was over before it was granted, the
// next one is sent.
func (c *acquireCall) answerOthers(err error) {
	others := c.others
	if len(others) == 0 {
		return
	}
	c.others = nil
	var unknown *engine.NoQuorum
	switch {
	case err == nil:
		err = engine.ErrHeld
	case errors.Is(err, engine.ErrHeld), errors.Is(err, engine.ErrWrongType), errors.As(err, &unknown):
	default:
		for _, other := range others {
			c.leases.hot.enter(nil, other)
		}
		return
	}
	for _, other := range others {
		other.refuse(err)
	}
}

// refuse ends a request that was never sent to the masters.
func (c *acquireCall) refuse(err error) {
	switch counts := &c.leases.engine.Counts; {
	case errors.Is(err, engine.ErrHeld):
		counts.Refused.Add(1)
	case !errors.Is(err, engine.ErrWrongType):
		counts.NoQuorum.Add(1)
	}
	c.leases.engine.Leave()
	c.done(Grant{}, err)
	if r := &c.request; r.tries() && c.leases.tries != nil {
		c.leases.tries.Ended(r, err)
	}
}
