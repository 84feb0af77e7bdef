// Events delivers the events of locks to listeners.
//
// Code that grants, releases or loses a lock calls emit, which costs one atomic load while
// there are no listeners anywhere. Otherwise the event goes to the dbEvents of its database.
// They pass it to the listeners of this daemon, which have a goroutine of their own, so that no
// lane ever waits for them. If other daemons listen, the event also goes into the next batch
// (transport.go). Each listening daemon detects expired leases itself (expirywatch.go), so
// an expiry is reported even if the daemon that granted the lease is dead.

package events

import (
	"cmp"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"redlockd/pool"
	"redlockd/redlock/engine"
)

// Kind is what happened to a lock.
type Kind uint8

const (
	Acquired  Kind = iota + 1 // granted, or granted again to the same token
	Released                  // given back
	Expired                   // not extended in time
	Lost                      // it was held for a connection, which has been notified
	Forced                    // taken away by an operator
	Extended                  // for expiry watches only: it lasts longer
	Shortened                 // for expiry watches only: its holder lets it end earlier
	Wanted                    // a client requests that its holders let go
)

var names = [...]string{"", "acquired", "released", "expired", "lost", "forced", "extended", "shortened", "wanted"}

// Event is one thing that happened to one lock.
type Event struct {
	Kind      Kind
	Key       engine.Key
	Fence     engine.Fence // of its grant; 0 = not known
	TokenHash string       // the first 8 hex digits of the SHA-256 of its token; "" = not known
	At        time.Time    // on the masters' clock
	Meta      string       // of acquired: the text that the holder gave

	lasts time.Duration // of acquired, extended and shortened: when no copy will be left
}

// Text is the event for people and programs: its name, fence, time in ms since 1970, token hash
// and, if there is one, the holder's text, with a space between them.
func (e Event) Text() string {
	line := make([]byte, 0, 64)
	line = append(append(line, names[e.Kind]...), ' ')
	line = append(strconv.AppendInt(line, int64(e.Fence), 10), ' ')
	line = append(strconv.AppendInt(line, e.At.UnixMilli(), 10), ' ')
	line = append(line, cmp.Or(e.TokenHash, noTokenHash)...)
	if e.Meta != "" {
		line = append(append(line, ' '), e.Meta...)
	}
	return string(line)
}

// maxUndelivered bounds the events that wait for this daemon's listeners.
const maxUndelivered = 1 << 16

// Counts count since the start of the daemon, see engine.Counts.
type Counts[N any] struct {
	Delivered N // to this daemon's listeners
	Dropped   N // that found no room in the queue or in the batch
	Sent      N // messages to other daemons, each of many events
	Received  N // such messages, repetitions not counted
	Missed    N // such messages that no master delivered before 64 later ones
}

// Add adds, to a snapshot, what another group of masters has counted.
func (c *Counts[N]) Add(d *Counts[N]) { engine.AddCounts(c, d) }

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

func (s *dbEvents) listen(entry *listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.listeners) == 0 {
		s.group.Events.Listen(s.receive)
	}
	s.listeners = append(s.listeners[:len(s.listeners):len(s.listeners)], entry)
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
	s := &dbEvents{events: e, group: e.engine.Pool.Group(db), daemon: e.daemon}
	e.byDB[db] = s
	return s
}

type listener struct{ onEvent func(Event) }

// dbEvents collects and delivers the events of one database.
type dbEvents struct {
	events *Events
	group  *pool.Group
	daemon string

	mu         sync.Mutex
	listeners  []*listener // never changed in place
	queue      []Event     // for them
	delivering bool        // a goroutine empties the queue
	ends       openLeases
	batch
	otherDaemons
}

func (s *dbEvents) clock() pool.Clock { return s.events.engine.Clock }

// time is read from the masters' clocks, so that the times of several daemons compare.
func (s *dbEvents) time() time.Time { return time.UnixMicro(s.group.Time()) }

// takeLocked delivers an event, unless only the expiry watch needs it or the end of its lock
// has been reported. daemon is its sender, "" = this daemon.
func (s *dbEvents) takeLocked(ev Event, daemon string) {
	if len(s.listeners) == 0 {
		return
	}
	now := s.clock().Now()
	for _, ready := range s.ends.filter(ev, daemon, now) {
		s.deliverLocked(ready)
	}
	s.setExpiryTimerLocked(now)
}

func (s *dbEvents) deliverLocked(ev Event) {
	if len(s.queue) >= maxUndelivered {
		s.events.counts.Dropped.Add(1)
		return
	}
	s.queue = append(s.queue, ev)
	if !s.delivering {
		s.delivering = true
		s.clock().AfterFunc(0, s.deliver)
	}
}

// deliver empties the queue; there is one at a time.
func (s *dbEvents) deliver() {
	for {
		s.mu.Lock()
		queue, listeners := s.queue, s.listeners
		s.queue = nil
		s.delivering = len(queue) > 0
		s.mu.Unlock()
		if len(queue) == 0 {
			return
		}
		for _, ev := range queue {
			for _, entry := range listeners {
				entry.onEvent(ev)
			}
		}
		s.events.counts.Delivered.Add(int64(len(queue)))
	}
}

// unlisten removes a listener; after the last one everything is forgotten.
func (s *dbEvents) unlisten(entry *listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listeners = slices.DeleteFunc(slices.Clone(s.listeners), func(other *listener) bool { return other == entry })
	if len(s.listeners) > 0 {
		return
	}
	s.group.Events.Unlisten()
	s.queue = nil
	s.ends.forget()
	s.senders = nil
}
