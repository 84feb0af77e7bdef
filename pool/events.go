// Events: messages between daemons, by way of the masters.
//
// A daemon whose clients subscribe to events subscribes to one channel on every master, on
// a connection of its own (subscriber.go). The other daemons detect that when they read the
// settings once a second (settings.go), and only then publish, on their lanes.
// Every master carries every message, so N copies arrive unless some are lost:
// the caller removes the duplicates. No decision depends on events.

package pool

import (
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// subscriberIdleTime is how long the connections stay open without a listener.
	subscriberIdleTime = 10 * time.Second
	// listenerCountLasts is how long a master's count of listeners is valid: three
	// readings, so that one that was not answered ends nothing.
	listenerCountLasts = 3 * settingsEvery * heartbeat
	// refusedLasts is the pause after a master refused to count them.
	countPause = time.Minute
)

// eventState is the listeners of a group, here and elsewhere; it has a lock of its own.
type eventState struct {
	local, remote atomic.Bool

	mu          sync.Mutex
	onMessage   func(message string)
	subscribers []*eventSubscriber // by lane; nil without a listener
	remoteUntil []time.Duration
	idle        Timer
	refusedAt   time.Duration // a master refused to count, 0 = none did
	closed      bool
}

// HasListeners reports whether any database's events have a listener, in this daemon or
// in another one. It costs one atomic load.
func (p *Pool) HasListeners() bool { return p.listenedDBs.Load() != 0 }

// Listeners reports whether this database's events have listeners in this daemon, and in others.
func (g *Group) Listeners() (here, elsewhere bool) {
	return g.events.local.Load(), g.events.remote.Load()
}

// carriesEvents reports whether the masters carry messages. Embedded masters have
// no other daemon, and a custom Dialer leads to other masters.
func (p *Pool) carriesEvents() bool { return !p.embedded() && p.options.Dialer == nil }

func (g *Group) eventChannel() string {
	return g.pool.options.KeyPrefix + "redlockd:events:" + strconv.Itoa(g.db)
}

// Listen passes every message of every master to onMessage, from several goroutines,
// until Unlisten. There is one listener at a time.
func (g *Group) Listen(onMessage func(message string)) {
	e := &g.events
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	e.onMessage = onMessage
	g.setListenersLocked(true, e.remote.Load())
	if e.subscribers != nil || !g.pool.carriesEvents() {
		return
	}
	for lane := range g.lanes {
		h := &eventSubscriber{group: g, index: lane}
		e.subscribers = append(e.subscribers, h)
		h.start()
	}
}

// Unlisten ends what Listen began. The connections stay open for a while.
func (g *Group) Unlisten() {
	e := &g.events
	e.mu.Lock()
	defer e.mu.Unlock()
	e.onMessage = nil
	g.setListenersLocked(false, e.remote.Load())
	switch {
	case e.subscribers == nil:
	case e.idle == nil:
		e.idle = g.pool.options.Clock.AfterFunc(subscriberIdleTime, g.closeIdleSubscribers)
	default:
		e.idle.Reset(subscriberIdleTime)
	}
}

func (g *Group) closeIdleSubscribers() {
	e := &g.events
	e.mu.Lock()
	if e.onMessage != nil {
		e.mu.Unlock()
		return
	}
	hearers := e.subscribers
	e.subscribers = nil
	e.mu.Unlock()
	for _, h := range hearers {
		h.close()
	}
}

// setListenersLocked keeps the pool's count of databases that have a listener.
func (g *Group) setListenersLocked(here, elsewhere bool) {
	e := &g.events
	before := e.local.Load() || e.remote.Load()
	e.local.Store(here)
	e.remote.Store(elsewhere)
	switch after := here || elsewhere; {
	case after && !before:
		g.pool.listenedDBs.Add(1)
	case before && !after:
		g.pool.listenedDBs.Add(-1)
	}
}

// deliver passes one message to the listener.
func (g *Group) deliver(message string) {
	e := &g.events
	e.mu.Lock()
	onMessage := e.onMessage
	e.mu.Unlock()
	if onMessage != nil {
		onMessage(message)
	}
}

// countsListeners reports whether the masters should count the listeners.
func (g *Group) countsListeners() bool {
	if !g.pool.carriesEvents() {
		return false
	}
	e := &g.events
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.refusedAt == 0 || g.now()-e.refusedAt > countPause
}

// countListeners reads a master's answer to PUBSUB NUMSUB. This daemon's own
// subscription does not count if it existed before the command was sent.
func (g *Group) countListeners(lane int, r Reply, sent time.Duration) {
	e := &g.events
	now := g.now()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	if r.Err != nil {
		if e.refusedAt == 0 {
			g.pool.options.Logger.Warn("count of event listeners refused; events stay within this daemon",
				"master", g.lanes[lane].master.Name, "err", r.Err.Error(), "hint", "allow the commands of the documented ACL")
		}
		e.refusedAt = now
		return
	}
	if len(r.Items) != 2 {
		return
	}
	n, ok := r.Items[1].Number()
	if !ok {
		return
	}
	if e.subscribers != nil && e.subscribers[lane].subscribedSince(sent) {
		n--
	}
	if e.remoteUntil == nil {
		e.remoteUntil = make([]time.Duration, len(g.lanes))
	}
	if e.remoteUntil[lane] = 0; n > 0 {
		e.remoteUntil[lane] = now + listenerCountLasts
	}
	elsewhere := false
	for _, until := range e.remoteUntil {
		elsewhere = elsewhere || until > now
	}
	g.setListenersLocked(e.local.Load(), elsewhere)
}

// Publish sends a message to the subscribers, by every connected master.
func (g *Group) Publish(message string) {
	op := &eventMessage{channel: g.eventChannel(), message: message}
	for lane := range g.lanes {
		g.Push(lane, op)
	}
}

// eventMessage is one message on its way to the masters. Whether one of them
// accepts it makes no difference: another one does, or the message is lost.
type eventMessage struct{ channel, message string }

var _ Operation = (*eventMessage)(nil)

func (a *eventMessage) Props() Props  { return Props{} }
func (a *eventMessage) Propose(int64) {}
func (a *eventMessage) Answer(Answer) {}

func (a *eventMessage) Command(_ *SendContext, c *Command) bool {
	c.Set("PUBLISH", a.channel, a.message)
	return true
}

func (g *Group) closeEvents() {
	e := &g.events
	e.mu.Lock()
	e.closed, e.onMessage = true, nil
	g.setListenersLocked(false, false)
	if e.idle != nil {
		e.idle.Stop()
	}
	hearers := e.subscribers
	e.subscribers = nil
	e.mu.Unlock()
	for _, h := range hearers {
		h.close()
	}
}
