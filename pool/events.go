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
	hearersIdle = 10 * time.Second
	// listenerCountLasts is how long a master's count of listeners is valid: three
	// readings, so that one that was not answered ends nothing.
	audienceLasts = 3 * factsEvery * heartbeat
	// refusedLasts is the pause after a master refused to count them.
	refusedLasts = time.Minute
)

// eventState is the listeners of a group, here and elsewhere; it has a lock of its own.
type events struct {
	here, elsewhere atomic.Bool

	mu       sync.Mutex
	heard    func(message string)
	hearers  []*hearer // by lane; nil without a listener
	audience []time.Duration
	idle     Timer
	refused  time.Duration // a master refused to count, 0 = none did
	closed   bool
}

// HasListeners reports whether any database's events have a listener, in this daemon or
// in another one. It costs one atomic load.
func (p *Pool) Listened() bool { return p.listened.Load() != 0 }

// Listeners reports whether this database's events have listeners in this daemon, and in others.
func (g *Group) Listened() (here, elsewhere bool) {
	return g.events.here.Load(), g.events.elsewhere.Load()
}

// carriesEvents reports whether the masters carry messages. Embedded masters have
// no other daemon, and a custom Dialer leads to other masters.
func (p *Pool) hears() bool { return !p.embedded() && p.options.Dialer == nil }

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
	e.heard = onMessage
	g.listenedLocked(true, e.elsewhere.Load())
	if e.hearers != nil || !g.pool.hears() {
		return
	}
	for lane := range g.lanes {
		h := &hearer{group: g, index: lane}
		e.hearers = append(e.hearers, h)
		h.start()
	}
}

// Unlisten ends what Listen began. The connections stay open for a while.
func (g *Group) Unlisten() {
	e := &g.events
	e.mu.Lock()
	defer e.mu.Unlock()
	e.heard = nil
	g.listenedLocked(false, e.elsewhere.Load())
	switch {
	case e.hearers == nil:
	case e.idle == nil:
		e.idle = g.pool.options.Clock.AfterFunc(hearersIdle, g.endIdleHearers)
	default:
		e.idle.Reset(hearersIdle)
	}
}

func (g *Group) endIdleHearers() {
	e := &g.events
	e.mu.Lock()
	if e.heard != nil {
		e.mu.Unlock()
		return
	}
	hearers := e.hearers
	e.hearers = nil
	e.mu.Unlock()
	for _, h := range hearers {
		h.close()
	}
}

// setListenersLocked keeps the pool's count of databases that have a listener.
func (g *Group) listenedLocked(here, elsewhere bool) {
	e := &g.events
	before := e.here.Load() || e.elsewhere.Load()
	e.here.Store(here)
	e.elsewhere.Store(elsewhere)
	switch after := here || elsewhere; {
	case after && !before:
		g.pool.listened.Add(1)
	case before && !after:
		g.pool.listened.Add(-1)
	}
}

// deliver passes one message to the listener.
func (g *Group) hear(message string) {
	e := &g.events
	e.mu.Lock()
	onMessage := e.heard
	e.mu.Unlock()
	if onMessage != nil {
		onMessage(message)
	}
}

// countsListeners reports whether the masters should count the listeners.
func (g *Group) asksForListeners() bool {
	if !g.pool.hears() {
		return false
	}
	e := &g.events
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.refused == 0 || g.now()-e.refused > refusedLasts
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
		if e.refused == 0 {
			g.pool.options.Logger.Warn("count of event listeners refused; events stay within this daemon",
				"master", g.lanes[lane].master.Name, "err", r.Err.Error(), "hint", "allow the commands of the documented ACL")
		}
		e.refused = now
		return
	}
	if len(r.Items) != 2 {
		return
	}
	n, ok := r.Items[1].Number()
	if !ok {
		return
	}
	if e.hearers != nil && e.hearers[lane].hearsSince(sent) {
		n--
	}
	if e.audience == nil {
		e.audience = make([]time.Duration, len(g.lanes))
	}
	if e.audience[lane] = 0; n > 0 {
		e.audience[lane] = now + audienceLasts
	}
	elsewhere := false
	for _, until := range e.audience {
		elsewhere = elsewhere || until > now
	}
	g.listenedLocked(e.here.Load(), elsewhere)
}

// Publish sends a message to the subscribers, by every connected master.
func (g *Group) Publish(message string) {
	op := &announcement{channel: g.eventChannel(), message: message}
	for lane := range g.lanes {
		g.Push(lane, op)
	}
}

// eventMessage is one message on its way to the masters. Whether one of them
// accepts it makes no difference: another one does, or the message is lost.
type announcement struct{ channel, message string }

var _ Operation = (*announcement)(nil)

func (a *announcement) Plan() Plan    { return Plan{} }
func (a *announcement) Propose(int64) {}
func (a *announcement) Answer(Answer) {}

func (a *announcement) Command(_ *Moment, c *Command) bool {
	c.Set("PUBLISH", a.channel, a.message)
	return true
}

func (g *Group) closeEvents() {
	e := &g.events
	e.mu.Lock()
	e.closed, e.heard = true, nil
	g.listenedLocked(false, false)
	if e.idle != nil {
		e.idle.Stop()
	}
	hearers := e.hearers
	e.hearers = nil
	e.mu.Unlock()
	for _, h := range hearers {
		h.close()
	}
}
