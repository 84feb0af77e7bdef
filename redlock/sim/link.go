package sim

import (
	"context"
	"errors"
	"slices"
	"time"

	"redlockd/pool"
	"redlockd/redlock/sim/fake"
)

var (
	errReset   = errors.New("connection reset by peer")
	errTimeout = errors.New("i/o timeout")
	errRefused = errors.New("connection refused")
)

// simLink is one connection: the daemon's end and the master's.
type simLink struct {
	world   *World
	daemon  *daemon // nil for a foreign client
	server  *server
	id      int64 // CLIENT ID
	since   time.Duration
	process int
	flights []*flight // under way and not received yet, in the order of their sending
	sending []*flight // not executed entirely, likewise
	broken  error     // seen from the daemon's end
	severed bool      // the master executes nothing more from it

	onKeys      func(keys []string) // of connections for announcements
	trackedKeys []string            // keys whose changes it is to receive
	caching     bool                // the next command's key is to be announced
}

var _ pool.WindowLink = (*simLink)(nil)

// flight is what one Exchange sent.
type flight struct {
	link        *simLink
	commands    []pool.Command
	done        int // executed
	replies     []pool.Reply
	sent        time.Duration
	waiter      *task
	listener    func([]pool.Reply) // instead of a waiter, for foreign clients
	orphan      bool               // no task waits any more
	arrived     bool               // it is in the master's socket, behind another one
	reached     bool               // the replies are under way behind those of another one
	unread      bool               // the replies are in the daemon's socket
	result      []pool.Reply
	timed       bool          // a time-out is scheduled
	clockReadAt time.Duration // when TIME was executed, at the end
	seal        bool
}

// dial is the daemon's Dialer.
func (d *daemon) dial(_ context.Context, m pool.Master, _ int) (pool.Link, error) {
	w := d.world
	s := w.servers[d.resolve(m.Name)]
	if d.dead {
		return nil, errDead
	}
	tasks{d}.Sleep(w.Scenario.latency(w) * 2)
	for end := w.now + d.exchangeTimeout(); s.stopped || d.blocked[s] > w.now; { // the greeting is not answered
		if w.now > end || d.dead {
			return nil, errTimeout
		}
		tasks{d}.Sleep(10 * time.Millisecond)
	}
	if d.dead || !s.up {
		return nil, errRefused
	}
	return s.accept(d), nil
}

func (s *server) accept(d *daemon) *simLink {
	s.lastID++
	l := &simLink{world: s.world, daemon: d, server: s, id: s.lastID, process: s.process, since: s.world.now}
	s.links[l.id] = l
	if d != nil {
		d.links[l] = true
	}
	return l
}

// Exchange parks the caller until the replies have come, or the link is over.
func (l *simLink) Exchange(commands []pool.Command, replies []pool.Reply) []pool.Reply {
	return l.ExchangeInWindow(commands, replies, nil)
}

// ExchangeInWindow is an Exchange behind which others may begin.
func (l *simLink) ExchangeInWindow(commands []pool.Command, replies []pool.Reply, onSent func()) []pool.Reply {
	w := l.world
	if l.broken != nil || l.daemon.dead {
		return lost(replies, len(commands), l.broken)
	}
	f := &flight{link: l, commands: commands, sent: w.now, waiter: w.current, replies: replies[:0]}
	l.launch(f, onSent)
	w.park()
	if f.result == nil { // the daemon died
		f.orphan, f.result = true, lost(nil, len(commands), errDead)
	}
	if f.orphan { // what was sent may be executed yet, and the lane re-uses its memory
		f.waiter = nil
		for i := range f.commands[f.done:] {
			c := &f.commands[f.done+i]
			c.Args = slices.Clone(c.Args)
		}
		f.commands = slices.Clone(f.commands)
		for i := range f.commands[:f.done] {
			f.commands[i].Args = nil
		}
		f.replies = nil
	}
	return f.result
}

func (l *simLink) launch(f *flight, onSent func()) {
	w := l.world
	l.flights = append(l.flights, f)
	f.seal = f.commands[len(f.commands)-1].Args[0] == "TIME" && len(f.commands) > 1
	delay, leaves := l.latency(), time.Duration(0)
	if w.chance(w.Scenario.Stall) && !w.calm { // the process sleeps between taking a flush and sending it
		leaves = w.between(0, 150*time.Millisecond)
	}
	leave := func() {
		l.sending = append(l.sending, f)
		w.after(delay, nil, f.arrive)
		if onSent != nil && f.result == nil && !f.orphan {
			onSent()
		}
	}
	if leaves == 0 && onSent == nil {
		leave()
		return
	}
	w.after(leaves, nil, leave) // onSent is called by the library, not by the caller
}

// latency is how long one way takes between this daemon and this master.
func (l *simLink) latency() time.Duration {
	delay := l.world.Scenario.latency(l.world)
	if far := l.world.Scenario.Distances; len(far) > 0 && l.daemon != nil {
		delay += far[int(l.server.name[0]-'a')%len(far)]
	}
	return delay
}

func lost(replies []pool.Reply, n int, err error) []pool.Reply {
	if err == nil {
		err = errReset
	}
	replies = replies[:0]
	for range n {
		replies = append(replies, pool.Reply{Kind: pool.ReplyError, Err: err})
	}
	return replies
}

// arrive delivers commands to the master: all of them, or what one packet holds.
func (f *flight) arrive() {
	l := f.link
	w, s := l.world, l.server
	switch {
	case l.severed || s.process != l.process || !s.up:
		l.end(errReset)
		return
	case len(l.sending) > 0 && l.sending[0] != f: // one connection keeps its order
		f.arrived = true
		return
	case l.daemon != nil && l.daemon.blocked[s] > w.now: // sent again when the way is free
		f.expectTimeout()
		w.after(l.daemon.blocked[s]-w.now+l.latency(), nil, f.arrive)
		return
	case s.stopped:
		f.expectTimeout()
		s.backlog = append(s.backlog, f)
		return
	}
	n := len(f.commands) - f.done
	if n > 1 && w.chance(w.Scenario.Split) && !w.calm {
		n = 1 + w.random.IntN(n-1)
	}
	f.execute(n)
	if w.violation != nil {
		return
	}
	if f.done < len(f.commands) {
		if fault := w.Scenario.Inside; fault != nil && !w.calm && w.chance(6) {
			fault(w, s)
		}
		gap := w.between(0, 300*time.Microsecond)
		if w.chance(8) && !w.Scenario.Reliable {
			gap = w.between(0, 120*time.Millisecond)
		}
		f.expectTimeoutIf(gap)
		w.after(gap, nil, f.arrive)
		return
	}
	l.executed()
	if f.orphan {
		return
	}
	delay := l.latency()
	if l.daemon != nil && l.daemon.index == 0 && !w.calm {
		delay += w.Scenario.Askew
	}
	f.expectTimeoutIf(w.now + delay - f.sent)
	w.after(delay, nil, f.reach)
}

// executed lets the master go on with what has arrived behind.
func (l *simLink) executed() {
	if len(l.sending) == 0 { // a foreign client's
		return
	}
	if l.sending = l.sending[1:]; len(l.sending) > 0 && l.sending[0].arrived {
		w := l.world
		w.after(w.between(0, 20*time.Microsecond), nil, l.sending[0].arrive)
	}
}

// reach puts the replies into the daemon's socket, which reads them when it runs.
func (f *flight) reach() {
	d := f.link.daemon
	w := f.link.world
	if l := f.link; len(l.flights) > 0 && l.flights[0] != f { // they follow those in front of them
		f.reached = true
		return
	}
	if f.orphan || f.link.broken != nil || d != nil && d.dead {
		return
	}
	if d == nil {
		f.deliver()
		return
	}
	if d.blocked[f.link.server] > w.now {
		f.expectTimeout()
		w.after(d.blocked[f.link.server]-w.now+f.link.latency(), nil, f.reach)
		return
	}
	f.unread = true
	switch {
	case w.chance(w.Scenario.Unread) && !w.calm:
		w.after(w.between(20*time.Millisecond, 400*time.Millisecond), d, f.deliver)
	case d.paused > w.now:
		w.after(0, d, f.deliver)
	default:
		f.deliver()
	}
}

// Unread reports whether the daemon has an answer in its socket.
func (l *simLink) Unread() bool {
	return len(l.flights) > 0 && !l.flights[0].orphan && l.flights[0].unread
}

// execute runs the next n commands in the master's own time.
func (f *flight) execute(n int) {
	l := f.link
	w, s := l.world, l.server
	s.readClock(int64(w.now / time.Microsecond))
	for range n {
		c := f.commands[f.done].Args
		f.done++
		w.commands++
		switch c[0] {
		case "SET", "EVALSHA":
			w.executions++
		case "ZADD":
			w.executions++ // a seal with a raise
		}
		r := s.execute(l, c)
		s.tracks(l, c)
		w.observer.executed(f, c, r, false)
		if w.trace.on {
			w.trace.command(l, c, r)
		}
		if r.Kind == fake.ReplyStatus {
			r.Kind = pool.ReplyString
		}
		if l.severed {
			return
		}
		if !f.orphan {
			f.replies = append(f.replies, r)
		}
	}
	s.noteClockRead(f)
}

// deliver hands the replies over.
func (f *flight) deliver() {
	l := f.link
	if f.orphan || l.broken != nil {
		return
	}
	l.server.noteClockSeen(l, f)
	for i, r := range f.replies {
		l.world.observer.executed(f, f.commands[i].Args, r, true)
	}
	f.complete(f.replies)
}

func (f *flight) complete(result []pool.Reply) {
	l := f.link
	f.result = result
	if len(l.flights) > 0 && l.flights[0] == f {
		if l.flights = l.flights[1:]; len(l.flights) > 0 && l.flights[0].reached {
			l.world.after(0, l.daemon, l.flights[0].reach)
		}
	}
	if t := f.waiter; t != nil {
		f.waiter = nil
		f.link.world.resume(t)
	} else if f.listener != nil {
		f.listener(result)
	}
}

// expectTimeout schedules the moment at which the daemon's transport gives up.
func (f *flight) expectTimeout() {
	if f.timed || f.orphan || f.link.daemon == nil {
		return
	}
	f.timed = true
	w := f.link.world
	w.after(f.sent+f.link.daemon.exchangeTimeout()-w.now, f.link.daemon, func() {
		if f.waiter != nil && !f.unread { // what has arrived is read
			f.link.end(errTimeout)
		}
	})
}

func (f *flight) expectTimeoutIf(takes time.Duration) {
	if takes > 50*time.Millisecond {
		f.expectTimeout()
	}
}

// end closes the daemon's end of the connection. What was sent may
// still be on its way to the master.
func (l *simLink) end(err error) {
	if l.broken != nil {
		return
	}
	l.broken = err
	if l.daemon != nil {
		delete(l.daemon.links, l)
	}
	l.stopTracking()
	all := l.abandon()
	for _, f := range all {
		if f.result == nil {
			f.complete(lost(nil, len(f.commands), err))
		}
	}
}

// abandon makes orphans of all that is under way, and returns what was none.
func (l *simLink) abandon() (all []*flight) {
	for _, f := range l.flights {
		if !f.orphan {
			f.orphan = true
			all = append(all, f)
		}
	}
	l.flights = nil
	return all
}

// Close is the daemon's; an Exchange under way fails at once. The master notices
// it later, and may execute meanwhile what has been sent.
func (l *simLink) Close() {
	if l.broken != nil {
		return
	}
	l.broken = errReset
	l.server.parted = l.world.now
	if l.daemon != nil {
		delete(l.daemon.links, l)
	}
	w := l.world
	for _, f := range l.abandon() {
		waiter := f.waiter
		f.waiter = nil
		// The caller goes on before the lane that waited does.
		w.after(0, l.daemon, func() {
			f.result = lost(nil, len(f.commands), errReset)
			if waiter != nil {
				w.resume(waiter)
			}
		})
	}
}

// sever closes the master's end: no command of it is executed any more.
func (l *simLink) sever() {
	l.severed = true
	l.server.parted = l.world.now
	delete(l.server.links, l.id)
	w := l.world
	w.after(w.Scenario.latency(w), l.daemon, func() { l.end(errReset) })
}
