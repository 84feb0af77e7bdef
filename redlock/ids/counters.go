package ids

import (
	"fmt"
	"sync"
	"time"

	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/stored"
)

// Request requests Count consecutive ids of a counter.
type Request struct {
	DB    int
	Name  engine.Key
	Count int64         // 1 … 1 000 000, validated by the caller
	Trace *engine.Trace // receives the votes; may be nil
}

// Done receives the first of the ids; see LockDone. Its errors are *NoQuorum,
// *NotDurable, *LostState, *Exhausted, *Busy, engine.ErrWrongType or ErrShutdown.
type Done func(first int64, err error)

// IDs are the id counters that this daemon serves. Each has one entry, so that concurrent
// requests for a counter share a round.
type IDs struct {
	engine *engine.Engine
	// Volatile allows counters on masters that may forget the last ids in a crash. A crash of
	// a quorum may then repeat ids. It is constant.
	Volatile bool

	mu   sync.Mutex
	byID map[counterID]*idCounter
}

// New returns the counters of a daemon.
func New(e *engine.Engine, volatile bool) *IDs { return &IDs{engine: e, Volatile: volatile} }

type counterID struct {
	db   int
	name engine.Key
}

// maxIdleIDCounters bounds the counters that are remembered while idle. Forgetting one
// costs its next request a second round.
const maxIdleIDCounters = 65_536

func (is *IDs) get(id counterID) *idCounter {
	is.mu.Lock()
	defer is.mu.Unlock()
	if is.byID == nil {
		is.byID = map[counterID]*idCounter{}
	}
	c := is.byID[id]
	if c == nil {
		if len(is.byID) >= maxIdleIDCounters {
			is.forgetLocked()
		}
		c = &idCounter{ids: is, group: is.engine.Pool.Group(id.db), id: id, key: is.key(id.name)}
		is.byID[id] = c
	}
	c.users++
	return c
}

func (is *IDs) release(c *idCounter, n int) {
	is.mu.Lock()
	defer is.mu.Unlock()
	c.users -= n
}

// forgetLocked drops some of the idle counters, in the map's random order.
func (is *IDs) forgetLocked() {
	n := 0
	for id, c := range is.byID {
		if c.users == 0 {
			delete(is.byID, id)
			n++
		}
		if n == maxIdleIDCounters/8 {
			return
		}
	}
}

// DropMoved forgets what this daemon knows of counters that have left the group: they may come back.
func (is *IDs) DropMoved() {
	is.mu.Lock()
	var moved []counterID
	for id := range is.byID {
		if is.engine.Ownership.Since(id.name) == 0 {
			moved = append(moved, id)
		}
	}
	is.mu.Unlock()
	for _, id := range moved {
		is.forget(id)
	}
}

// forget drops what this daemon remembers of a counter's value.
func (is *IDs) forget(id counterID) {
	is.mu.Lock()
	c := is.byID[id]
	is.mu.Unlock()
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.highest, c.confirmed, c.since = 0, 0, 0
}

// idCounter is one counter in this daemon.
type idCounter struct {
	ids   *IDs
	group *pool.Group
	id    counterID
	key   string
	users int // requests not yet answered; guarded by IDs.mu

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
	count      int64
	arrived    time.Duration
	done       Done
	trace      *engine.Trace
	unanswered time.Duration // end of the first round that no quorum answered, 0 = none
}

func (is *IDs) key(name engine.Key) string { return is.engine.MasterKey(stored.Counters + name) }

// foreign is the reason of a master that has other data in the place of a counter.
func (is *IDs) foreign(name engine.Key) error {
	return fmt.Errorf("keeps something at %s that is no counter", is.key(name))
}
