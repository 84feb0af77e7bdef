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
func (d *dbEvents) time() time.Time { return time.UnixMicro(d.group.Time()) }

func (d *dbEvents) listen(entry *listener) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.listeners) == 0 {
		d.group.Events.Listen(d.receive)
	}
	d.listeners = append(d.listeners[:len(d.listeners):len(d.listeners)], entry)
}

// unlisten removes a listener; after the last one everything is forgotten.
func (d *dbEvents) unlisten(entry *listener) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.listeners = slices.DeleteFunc(slices.Clone(d.listeners), func(other *listener) bool { return other == entry })
	if len(d.listeners) > 0 {
		return
	}
	d.group.Events.Unlisten()
	d.queue = nil
	d.ends.forget()
	d.senders = nil
}

// takeLocked delivers an event, unless only the expiry watch needs it or the end of its lock
// has been reported. daemon is its sender, "" = this daemon.
func (d *dbEvents) takeLocked(ev Event, daemon string) {
	if len(d.listeners) == 0 {
		return
	}
	now := d.engine.Clock.Now()
	for _, ready := range d.ends.filter(ev, daemon, now) {
		d.deliverLocked(ready)
	}
	d.setExpiryTimerLocked(now)
}

func (d *dbEvents) deliverLocked(ev Event) {
	if len(d.queue) >= maxUndelivered {
		d.counts.Dropped.Add(1)
		return
	}
	d.queue = append(d.queue, ev)
	if !d.delivering {
		d.delivering = true
		d.engine.Clock.AfterFunc(0, d.deliver)
	}
}

// deliver empties the queue; there is one at a time.
func (d *dbEvents) deliver() {
	for {
		d.mu.Lock()
		queue, listeners := d.queue, d.listeners
		d.queue = nil
		d.delivering = len(queue) > 0
		d.mu.Unlock()
		if len(queue) == 0 {
			return
		}
		for _, ev := range queue {
			for _, entry := range listeners {
				entry.onEvent(ev)
			}
		}
		d.counts.Delivered.Add(int64(len(queue)))
	}
}

// addToBatchLocked adds an event to the next batch.
func (d *dbEvents) addToBatchLocked(ev *Event) {
	if len(d.text)+len(ev.Key)+len(ev.Meta)+128 > maxBatchSize {
		d.counts.Dropped.Add(1)
		return
	}
	d.text = appendEvent(d.text, ev)
	if d.sending {
		return
	}
	d.sending = true
	d.engine.Clock.AfterFunc(batchInterval, d.onBatchTimer)
}

// onBatchTimer sends the gathered batch.
func (d *dbEvents) onBatchTimer() {
	d.mu.Lock()
	d.number++
	message := fmt.Sprintf("1 %s %d\n%s", d.daemon, d.number, d.text)
	d.text = d.text[:0]
	d.mu.Unlock()
	engine.Publish(d.engine.Pool, d.group, d.group.Events.Channel, message)
	d.counts.Sent.Add(1)
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.text) > 0 { // gathered while this batch was sent
		d.engine.Clock.AfterFunc(batchInterval, d.onBatchTimer)
		return
	}
	d.sending = false
}

// receive takes a message from one of the masters.
func (d *dbEvents) receive(message string) {
	name, number, body, ok := parseBatch(message)
	if !ok || name == d.daemon {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.listeners) == 0 {
		return
	}
	from := d.senderLocked(name, number)
	if from == nil {
		return
	}
	isNew, missed := from.take(number)
	d.counts.Missed.Add(missed)
	if !isNew {
		return
	}
	from.since = d.engine.Clock.Now()
	d.counts.Received.Add(1)
	for len(body) > 0 {
		var ev Event
		if ev, body, ok = parseEvent(body); !ok {
			return
		}
		if ev.Kind != 0 {
			d.takeLocked(ev, name)
		}
	}
}

// senderLocked finds or adds a daemon; nil if there are too many. The first number from a new
// daemon begins its sequence.
func (d *dbEvents) senderLocked(name string, number uint64) *sender {
	if from := d.senders[name]; from != nil {
		return from
	}
	if d.senders == nil {
		d.senders = map[string]*sender{}
	}
	if len(d.senders) >= maxSenders {
		now := d.engine.Clock.Now()
		maps.DeleteFunc(d.senders, func(_ string, from *sender) bool { return now-from.since > senderTimeout })
		if len(d.senders) >= maxSenders {
			return nil
		}
	}
	from := &sender{newest: number - 1, seen: ^uint64(0)}
	d.senders[name] = from
	return from
}

// setExpiryTimerLocked sets the timer to fire when the first grant is due.
func (d *dbEvents) setExpiryTimerLocked(now time.Duration) {
	e := &d.ends
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
		e.timer = d.engine.Clock.AfterFunc(delay, d.onExpiryTimer)
		return
	}
	e.timer.Reset(delay)
}

// onExpiryTimer reports what expires.
func (d *dbEvents) onExpiryTimer() {
	at := d.time()
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.engine.Clock.Now()
	d.ends.timerAt = 0
	for _, ready := range d.ends.expire(now, at) {
		d.deliverLocked(ready)
	}
	d.setExpiryTimerLocked(now)
}
