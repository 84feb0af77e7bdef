package redlock

import (
	"sync"
	"time"

	"redlockd/pool"
)

// idCounters are the id counters that this daemon serves. Each has one entry, so that
// concurrent requests for a counter share a round.
type idCounters struct {
	mu   sync.Mutex
	byID map[counterID]*idCounter
}

type counterID struct {
	db   int
	name Key
}

// maxIdleIDCounters bounds the counters that are remembered while idle. Forgetting one
// costs its next request a second round.
const maxIdleIDCounters = 65_536

func (m *idCounters) get(id counterID, l *Locker) *idCounter {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.byID == nil {
		m.byID = map[counterID]*idCounter{}
	}
	c := m.byID[id]
	if c == nil {
		if len(m.byID) >= maxIdleIDCounters {
			m.forgetLocked()
		}
		c = &idCounter{locker: l, group: l.engine.Pool.Group(id.db), id: id, key: l.idKey(id.name)}
		m.byID[id] = c
	}
	c.users++
	return c
}

func (m *idCounters) release(c *idCounter, n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c.users -= n
}

// forgetLocked drops some of the idle counters, in the map's random order.
func (m *idCounters) forgetLocked() {
	n := 0
	for id, c := range m.byID {
		if c.users == 0 {
			delete(m.byID, id)
			n++
		}
		if n == maxIdleIDCounters/8 {
			return
		}
	}
}

// idCounter is one counter in this daemon.
type idCounter struct {
	locker *Locker
	group  *pool.Group
	id     counterID
	key    string
	users  int // requests not yet answered; guarded by idCounters.mu

	mu      sync.Mutex
	waiting []idCaller
	running bool
	highest int64 // X: highest value seen, a hint
	// confirmed was chosen by a quorum of trusted masters in a round that started at
	// since. A master that was admitted long enough before since may adopt it.
	confirmed int64
	since     time.Duration
}

type idCaller struct {
	count   int64
	arrived time.Duration
	done    IDDone
	trace   *Trace
}

func (l *Locker) idKey(name Key) string { return l.options.KeyPrefix + "redlockd:id:" + string(name) }
