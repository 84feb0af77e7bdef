// lockEvents delivers the events of locks to listeners.
//
// Code that grants, releases or loses a lock calls emit, which costs one atomic load while
// there are no listeners anywhere. Otherwise the event goes to the dbEvents of its database.
// They pass it to the listeners of this daemon, which have a goroutine of their own, so that no
// lane ever waits for them. If other daemons listen, the event also goes into the next batch
// (eventtransport.go). Each listening daemon detects expired leases itself (expirywatch.go), so
// an expiry is reported even if the daemon that granted the lease is dead.

package redlock

import (
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"redlockd/pool"
)

// EventKind is what happened to a lock.
type EventKind uint8

const (
	EventAcquired EventKind = iota + 1 // granted, or granted again to the same token
	EventReleased                      // given back
	EventExpired                       // not extended in time
	EventLost                          // it was held for a connection, which has been notified
	EventForced                        // taken away by an operator
	eventExtended                      // between daemons only: it lasts longer
)

var eventWords = [...]string{"", "acquired", "released", "expired", "lost", "forced", "extended"}

// Event is one thing that happened to one lock.
type Event struct {
	Kind  EventKind
	Key   Key
	Fence Fence     // of its grant; 0 = not known
	Mark  string    // the first 8 hex digits of the SHA-256 of its token; "" = not known
	At    time.Time // on the masters' clock

	lasts time.Duration // of acquired and extended: when no copy will be left
}

// Text is the event for people and programs: its name, fence, time in ms since 1970 and token
// hash, with a space between them.
func (e Event) Text() string {
	hash := e.Mark
	if hash == "" {
		hash = "-"
	}
	line := make([]byte, 0, 64)
	line = append(append(line, eventWords[e.Kind]...), ' ')
	line = append(strconv.AppendInt(line, int64(e.Fence), 10), ' ')
	line = append(strconv.AppendInt(line, e.At.UnixMilli(), 10), ' ')
	return string(append(line, hash...))
}

// mostUndelivered bounds the events that wait for this daemon's listeners.
const mostUndelivered = 1 << 16

// EventCounts count since the start of the daemon.
type EventCounts struct {
	Delivered int64 // to this daemon's listeners
	Dropped   int64 // that found no room in the queue or in the batch
	Sent      int64 // messages to other daemons, each of many events
	Received  int64 // such messages, repetitions not counted
	Missed    int64 // such messages that no master delivered
}

type eventCounters struct{ delivered, dropped, sent, received, missed atomic.Int64 }

// lockEvents are the dbEvents of all databases with listeners.
type events struct {
	locker *Locker
	counts eventCounters

	mu     sync.Mutex
	daemon string // this daemon's name in batches; made when first needed
	stages map[int]*stage
}

// EventCounts are a snapshot.
func (l *Locker) EventCounts() EventCounts {
	c := &l.events.counts
	return EventCounts{
		Delivered: c.delivered.Load(), Dropped: c.dropped.Load(),
		Sent: c.sent.Load(), Received: c.received.Load(), Missed: c.missed.Load(),
	}
}

// Listen calls onEvent with every event of a database's locks, one at a time and in order for
// each key, until end is called; one call may still be under way then. Events of other daemons
// come from about a second later on: those daemons need that time to learn of the listener.
func (l *Locker) Listen(db int, onEvent func(Event)) (end func()) {
	s := l.events.stage(db)
	entry := &listener{onEvent}
	s.mu.Lock()
	s.listeners = append(s.listeners[:len(s.listeners):len(s.listeners)], entry)
	if len(s.listeners) == 1 {
		s.group.Listen(s.receive)
	}
	s.mu.Unlock()
	return sync.OnceFunc(func() { s.end(entry) })
}

// emit reports an event to all listeners. A token or fence that is not known is left empty.
// lasts is, for grants, the time until no copy is left.
func (e *events) emit(kind EventKind, id lockID, fence Fence, lasts time.Duration) {
	if e.locker.pool.Listened() {
		e.tell(kind, id, fence, lasts)
	}
}

func (e *events) tell(kind EventKind, id lockID, fence Fence, lasts time.Duration) {
	s := e.stage(id.db)
	here, elsewhere := s.group.Listened()
	if !here && !elsewhere {
		return
	}
	ev := Event{Kind: kind, Key: id.key, Fence: fence, At: s.time(), lasts: lasts}
	if id.token != "" {
		ev.Mark = id.token.Shown()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if elsewhere {
		s.postLocked(&ev)
	}
	if here {
		s.takeLocked(ev, "")
	}
}

// extended reports to expiry watches that a lease lasts longer.
func (e *events) extended(id lockID, lasts time.Duration) {
	if e.locker.pool.Listened() {
		known, _ := e.locker.leases.find(id)
		e.tell(eventExtended, id, known.fence, lasts)
	}
}

// busy counts what is on its way to listeners and into batches.
func (e *events) busy() (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range e.stages {
		s.mu.Lock()
		if s.delivering || s.leaving {
			n++
		}
		s.mu.Unlock()
	}
	return n
}

func (e *events) stage(db int) *stage {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s := e.stages[db]; s != nil {
		return s
	}
	if e.stages == nil {
		e.stages, e.daemon = map[int]*stage{}, string(NewToken())
	}
	s := &stage{events: e, group: e.locker.pool.Group(db), daemon: e.daemon}
	e.stages[db] = s
	return s
}

type listener struct{ heard func(Event) }

// dbEvents collects and delivers the events of one database.
type stage struct {
	events *events
	group  *pool.Group
	daemon string

	mu         sync.Mutex
	listeners  []*listener // never changed in place
	queue      []Event     // for them
	delivering bool        // a goroutine empties the queue
	ends       openGrants
	outbox
	inbox
}

func (s *stage) clock() pool.Clock { return s.events.locker.clock }

// time is read from the masters' clocks, so that the times of several daemons compare.
func (s *stage) time() time.Time { return time.UnixMicro(s.group.Time()) }

// takeLocked delivers an event, unless only the expiry watch needs it or the end of its lock
// has been reported. daemon is its sender, "" = this daemon.
func (s *stage) takeLocked(ev Event, daemon string) {
	if len(s.listeners) == 0 {
		return
	}
	now := s.clock().Now()
	for _, ready := range s.ends.judge(ev, daemon, now) {
		s.deliverLocked(ready)
	}
	s.watchLocked(now)
}

func (s *stage) deliverLocked(ev Event) {
	if len(s.queue) >= mostUndelivered {
		s.events.counts.dropped.Add(1)
		return
	}
	s.queue = append(s.queue, ev)
	if !s.delivering {
		s.delivering = true
		s.clock().AfterFunc(0, s.deliver)
	}
}

// deliver empties the queue; there is one at a time.
func (s *stage) deliver() {
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
				entry.heard(ev)
			}
		}
		s.events.counts.delivered.Add(int64(len(queue)))
	}
}

// unlisten removes a listener; after the last one everything is forgotten.
func (s *stage) end(entry *listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var rest []*listener
	for _, other := range s.listeners {
		if other != entry {
			rest = append(rest, other)
		}
	}
	s.listeners = rest
	if len(rest) > 0 {
		return
	}
	s.group.Unlisten()
	s.queue = nil
	s.ends.forget()
	s.inbox.forget()
}
