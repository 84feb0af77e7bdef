package events

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"redlockd/pool"
	"redlockd/redlock/engine"
)

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

type listener struct{ onEvent func(Event) }

// dbEvents collects and delivers the events of one database.
type dbEvents struct {
	engine *engine.Engine
	counts *Counts[atomic.Int64]
	group  *pool.Group
	daemon string

	mu         sync.Mutex
	listeners  []*listener // never changed in place
	queue      []Event     // for them
	delivering bool        // a goroutine empties the queue
	ends       openLeases
	senders    map[string]*sender // the other daemons that send events
	text       []byte             // of the next batch
	number     uint64             // of the last batch
	sending    bool               // the timer is set, or a batch is about to leave
}

// time is read from the masters' clocks, so that the times of several daemons compare.
func (s *dbEvents) time() time.Time { return time.UnixMicro(s.group.Time()) }

func (s *dbEvents) listen(entry *listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.listeners) == 0 {
		s.group.Events.Listen(s.receive)
	}
	s.listeners = append(s.listeners[:len(s.listeners):len(s.listeners)], entry)
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

// takeLocked delivers an event, unless only the expiry watch needs it or the end of its lock
// has been reported. daemon is its sender, "" = this daemon.
func (s *dbEvents) takeLocked(ev Event, daemon string) {
	if len(s.listeners) == 0 {
		return
	}
	now := s.engine.Clock.Now()
	for _, ready := range s.ends.filter(ev, daemon, now) {
		s.deliverLocked(ready)
	}
	s.setExpiryTimerLocked(now)
}

func (s *dbEvents) deliverLocked(ev Event) {
	if len(s.queue) >= maxUndelivered {
		s.counts.Dropped.Add(1)
		return
	}
	s.queue = append(s.queue, ev)
	if !s.delivering {
		s.delivering = true
		s.engine.Clock.AfterFunc(0, s.deliver)
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
		s.counts.Delivered.Add(int64(len(queue)))
	}
}

// addToBatchLocked adds an event to the next batch.
func (s *dbEvents) addToBatchLocked(ev *Event) {
	if len(s.text)+len(ev.Key)+len(ev.Meta)+128 > maxBatchSize {
		s.counts.Dropped.Add(1)
		return
	}
	s.text = appendEvent(s.text, ev)
	if s.sending {
		return
	}
	s.sending = true
	s.engine.Clock.AfterFunc(batchInterval, s.onBatchTimer)
}

// onBatchTimer sends the gathered batch.
func (s *dbEvents) onBatchTimer() {
	s.mu.Lock()
	s.number++
	message := fmt.Sprintf("1 %s %d\n%s", s.daemon, s.number, s.text)
	s.text = s.text[:0]
	s.mu.Unlock()
	engine.Publish(s.engine.Pool, s.group, s.group.Events.Channel, message)
	s.counts.Sent.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.text) > 0 { // gathered while this batch was sent
		s.engine.Clock.AfterFunc(batchInterval, s.onBatchTimer)
		return
	}
	s.sending = false
}

// receive takes a message from one of the masters.
func (s *dbEvents) receive(message string) {
	name, number, body, ok := parseBatch(message)
	if !ok || name == s.daemon {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.listeners) == 0 {
		return
	}
	from := s.senderLocked(name, number)
	if from == nil {
		return
	}
	isNew, missed := from.take(number)
	s.counts.Missed.Add(missed)
	if !isNew {
		return
	}
	from.since = s.engine.Clock.Now()
	s.counts.Received.Add(1)
	for len(body) > 0 {
		var ev Event
		if ev, body, ok = parseEvent(body); !ok {
			return
		}
		if ev.Kind != 0 {
			s.takeLocked(ev, name)
		}
	}
}

// senderLocked finds or adds a daemon; nil if there are too many. The first number from a new
// daemon begins its sequence.
func (s *dbEvents) senderLocked(name string, number uint64) *sender {
	if from := s.senders[name]; from != nil {
		return from
	}
	if s.senders == nil {
		s.senders = map[string]*sender{}
	}
	if len(s.senders) >= maxSenders {
		now := s.engine.Clock.Now()
		maps.DeleteFunc(s.senders, func(_ string, from *sender) bool { return now-from.since > senderTimeout })
		if len(s.senders) >= maxSenders {
			return nil
		}
	}
	from := &sender{newest: number - 1, seen: ^uint64(0)}
	s.senders[name] = from
	return from
}

// setExpiryTimerLocked sets the timer to fire when the first grant is due.
func (s *dbEvents) setExpiryTimerLocked(now time.Duration) {
	e := &s.ends
	if len(e.queue) == 0 {
		return
	}
	due := e.queue[0].due
	if e.timerAt != 0 && e.timerAt <= due {
		return
	}
	e.timerAt = due
	delay := max(due-now, time.Millisecond)
	if e.timer == nil {
		e.timer = s.engine.Clock.AfterFunc(delay, s.onExpiryTimer)
		return
	}
	e.timer.Reset(delay)
}

// onExpiryTimer reports what expires.
func (s *dbEvents) onExpiryTimer() {
	at := s.time()
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.engine.Clock.Now()
	s.ends.timerAt = 0
	for _, ready := range s.ends.expire(now, at) {
		s.deliverLocked(ready)
	}
	s.setExpiryTimerLocked(now)
}
