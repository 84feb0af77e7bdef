// Events: messages between daemons, by way of the masters.
//
// A daemon whose clients subscribe to events subscribes to one channel on every master, on
// a connection of its own (subscriber.go). The other daemons detect that when they read the
// settings once a second (pool/readings.go), and only then publish, on their lanes.
// Every master carries every message, so N copies arrive unless some are lost:
// the caller removes the duplicates. No decision depends on events.

package notify

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"redlockd/pool/clock"
	"redlockd/pool/wire"
)

const (
	// subscriberIdleTime is how long the connections stay open without a listener.
	subscriberIdleTime = 10 * time.Second
	// countLasts is for how many readings a master's count of listeners is valid: so
	// that one that was not answered ends nothing.
	countLasts = 3
	// countPause is the pause after a master refused to count them.
	countPause = time.Minute
)

// Events is the listeners of one database, here and elsewhere; it has a lock of its own.
type Events struct {
	Config
	Channel    string        // the one on which the messages travel
	Carried    bool          // the masters carry messages
	CountEvery time.Duration // from one reading of a master's count to the next
	Databases  *atomic.Int32 // how many have a listener

	local, remote atomic.Bool

	mu          sync.Mutex
	onMessage   func(message string)
	subscribers []*eventSubscriber // by lane; nil without a listener
	remoteUntil []time.Duration
	idle        clock.Timer
	refusedAt   time.Duration // a master refused to count, 0 = none did
	closed      bool
}

// Listeners reports whether this database's events have listeners in this daemon, and in others.
func (e *Events) Listeners() (here, elsewhere bool) { return e.local.Load(), e.remote.Load() }

// Listen passes every message of every master to onMessage, from several goroutines,
// until Unlisten. There is one listener at a time.
func (e *Events) Listen(onMessage func(message string)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	e.onMessage = onMessage
	e.setListenersLocked(true, e.remote.Load())
	if e.subscribers == nil && e.Carried {
		e.subscribeLocked()
	}
}

func (e *Events) subscribeLocked() {
	for _, m := range e.Masters {
		e.subscribers = append(e.subscribers, newEventSubscriber(e, m))
	}
}

// Follow changes the list of masters. What is under way on the former ones is lost.
func (e *Events) Follow(masters []wire.Master) {
	e.mu.Lock()
	e.Masters, e.remoteUntil = masters, nil
	former := e.subscribers
	if e.subscribers = nil; former != nil {
		e.subscribeLocked()
	}
	e.mu.Unlock()
	for _, h := range former {
		h.close()
	}
}

// Unlisten ends what Listen began. The connections stay open for a while.
func (e *Events) Unlisten() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.onMessage = nil
	e.setListenersLocked(false, e.remote.Load())
	switch {
	case e.subscribers == nil:
	case e.idle == nil:
		e.idle = e.Clock.AfterFunc(subscriberIdleTime, e.closeIdleSubscribers)
	default:
		e.idle.Reset(subscriberIdleTime)
	}
}

func (e *Events) closeIdleSubscribers() { e.end(false) }

// Close ends all connections; nothing is delivered any more.
func (e *Events) Close() { e.end(true) }

func (e *Events) end(forever bool) {
	e.mu.Lock()
	if forever {
		e.closed, e.onMessage = true, nil
		e.setListenersLocked(false, false)
	}
	var subscribers []*eventSubscriber
	if e.onMessage == nil {
		subscribers, e.subscribers = e.subscribers, nil
	}
	if e.closed && e.idle != nil {
		e.idle.Stop()
	}
	e.mu.Unlock()
	for _, h := range subscribers {
		h.close()
	}
}

// setListenersLocked keeps the count of databases that have a listener.
func (e *Events) setListenersLocked(here, elsewhere bool) {
	before := e.local.Load() || e.remote.Load()
	e.local.Store(here)
	e.remote.Store(elsewhere)
	switch after := here || elsewhere; {
	case after && !before:
		e.Databases.Add(1)
	case before && !after:
		e.Databases.Add(-1)
	}
}

// deliver passes one message to the listener.
func (e *Events) deliver(message string) {
	e.mu.Lock()
	onMessage := e.onMessage
	e.mu.Unlock()
	if onMessage != nil {
		onMessage(message)
	}
}

// Counts reports whether the masters should count the listeners.
func (e *Events) Counts() bool {
	if !e.Carried {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.refusedAt == 0 || e.Clock.Now()-e.refusedAt > countPause
}

// Count reads a master's answer to PUBSUB NUMSUB. This daemon's own
// subscription does not count if it existed before the command was sent.
func (e *Events) Count(lane int, r wire.Reply, sent time.Duration) {
	now := e.Clock.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || lane >= len(e.Masters) {
		return
	}
	if r.Err != nil {
		if e.refusedAt == 0 {
			e.Logger.Warn("count of event listeners refused; events stay within this daemon",
				"master", e.Masters[lane].Name, "err", r.Err.Error(), "hint", "allow the commands of the documented ACL")
		}
		e.refusedAt = now
		return
	}
	if len(r.Items) != 2 || r.Items[1].Kind != wire.ReplyInt {
		return
	}
	n := r.Items[1].Int
	if lane < len(e.subscribers) && e.subscribers[lane].subscribedSince(sent) {
		n--
	}
	if e.remoteUntil == nil {
		e.remoteUntil = make([]time.Duration, len(e.Masters))
	}
	if e.remoteUntil[lane] = 0; n > 0 {
		e.remoteUntil[lane] = now + countLasts*e.CountEvery
	}
	elsewhere := slices.ContainsFunc(e.remoteUntil, func(until time.Duration) bool { return until > now })
	e.setListenersLocked(e.local.Load(), elsewhere)
}
