// Events delivers the events of locks to listeners.
//
// Code that grants, releases or loses a lock calls Emit, which costs one atomic load while
// there are no listeners anywhere. Otherwise the event goes to the dbEvents of its database.
// They pass it to the listeners of this daemon, which have a goroutine of their own, so that no
// lane ever waits for them. If other daemons listen, the event also goes into the next batch
// (transport.go). Each listening daemon detects expired leases itself (expirywatch.go), so
// an expiry is reported even if the daemon that granted the lease is dead.

package events

import (
	"sync"
	"sync/atomic"
	"time"

	"redlockd/redlock/engine"
)

// Events are the events of all databases with listeners.
type Events struct {
	engine *engine.Engine
	counts Counts[atomic.Int64]

	mu     sync.Mutex
	daemon string // this daemon's name in batches; made when first needed
	byDB   map[int]*dbEvents
}

// New returns the events of a daemon.
func New(e *engine.Engine) *Events { return &Events{engine: e} }

// EventCounts are a snapshot.
func (e *Events) EventCounts() (c Counts[int64]) {
	engine.Load(&e.counts, &c)
	return c
}

// Listen calls onEvent with every event of a database's locks, one at a time, until end is
// called; one call may still be under way then. A grant comes before its end; fences order the
// grants of a key. Events of other daemons come from about a second later on: those daemons
// need that time to learn of the listener.
func (e *Events) Listen(db int, onEvent func(Event)) (end func()) {
	s := e.ofDB(db)
	entry := &listener{onEvent}
	s.listen(entry)
	return sync.OnceFunc(func() { s.unlisten(entry) })
}

// Emit reports an event to all listeners. A token or fence that is not known is left empty.
// lasts is, for leases that go on, the time until no copy is left.
func (e *Events) Emit(kind Kind, id engine.LeaseID, fence engine.Fence, lasts time.Duration) {
	if e.engine.Pool.HasListeners() {
		e.emitNow(kind, id, fence, lasts, "")
	}
}

// EmitAcquired is Emit for a grant, with the text that its holder gives.
func (e *Events) EmitAcquired(id engine.LeaseID, fence engine.Fence, lasts time.Duration, meta string) {
	if e.engine.Pool.HasListeners() {
		e.emitNow(Acquired, id, fence, lasts, meta)
	}
}

func (e *Events) emitNow(kind Kind, id engine.LeaseID, fence engine.Fence, lasts time.Duration, meta string) {
	s := e.ofDB(id.DB)
	here, elsewhere := s.group.Events.Listeners()
	if !here && !elsewhere {
		return
	}
	ev := Event{Kind: kind, Key: id.Key, Fence: fence, At: s.time(), Meta: meta, lasts: lasts}
	if id.Token != "" {
		ev.TokenHash = id.Token.ShortHash()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if elsewhere {
		s.addToBatchLocked(&ev)
	}
	if here {
		s.takeLocked(ev, "")
	}
}

// Busy counts what is on its way to listeners and into batches.
func (e *Events) Busy() (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range e.byDB {
		s.mu.Lock()
		if s.delivering || s.sending {
			n++
		}
		s.mu.Unlock()
	}
	return n
}

func (e *Events) ofDB(db int) *dbEvents {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s := e.byDB[db]; s != nil {
		return s
	}
	if e.byDB == nil {
		e.byDB, e.daemon = map[int]*dbEvents{}, string(engine.NewToken())
	}
	s := &dbEvents{engine: e.engine, counts: &e.counts, group: e.engine.Pool.Group(db), daemon: e.daemon}
	e.byDB[db] = s
	return s
}
