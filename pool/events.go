// Events: messages between daemons, by way of the masters. Package notify receives them;
// they are published on the lanes.

package pool

import "redlockd/pool/notify"

// HasListeners reports whether any database's events have a listener, in this daemon or
// in another one. It costs one atomic load.
func (p *Pool) HasListeners() bool { return p.listenedDBs.Load() != 0 }

// carriesEvents reports whether the masters carry messages. Embedded masters have
// no other daemon, and a custom Dialer leads to other masters.
func (p *Pool) carriesEvents() bool { return !p.embedded() && p.options.Dialer == nil }

// notifyConfig is what package notify must know about the masters of a database.
func (p *Pool) notifyConfig(db int) notify.Config {
	o := &p.options
	return notify.Config{Masters: o.Masters, DB: db, Clock: o.Clock, Logger: o.Logger, Timeout: p.dialTimeout()}
}

// Listeners reports whether this database's events have listeners in this daemon, and in others.
func (g *Group) Listeners() (here, elsewhere bool) { return g.events.Listeners() }

// Listen passes every message of every master to onMessage, from several goroutines,
// until Unlisten. There is one listener at a time.
func (g *Group) Listen(onMessage func(message string)) { g.events.Listen(onMessage) }

// Unlisten ends what Listen began. The connections stay open for a while.
func (g *Group) Unlisten() { g.events.Unlisten() }

// Publish sends a message to the subscribers, by every connected master.
func (g *Group) Publish(message string) {
	op := &eventMessage{channel: g.events.Channel(), message: message}
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
