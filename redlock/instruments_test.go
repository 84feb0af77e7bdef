package redlock

// instruments_test.go holds what a test puts between a daemon and the world: a
// clock that is wrong or whose timers wait, and a tap on what is written to the
// masters.

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"redlockd/pool"
)

// heartbeat is how often a daemon queries the identity of its masters. The pool has no name for
// it outside; TestDaemon_CanBeMadeBlind checks that it is the one.
const heartbeat = 100 * time.Millisecond

// clock is a daemon's own.
type clock struct {
	pool.Clock
	ahead atomic.Int64 // ns by which it is wrong

	mu   sync.Mutex
	held []time.Duration // timers of these durations never fire
	kept int             // timers that were held
}

func (c *clock) Now() time.Duration { return c.Clock.Now() + time.Duration(c.ahead.Load()) }

// hold keeps timers of this duration, which are to be made later, from firing.
func (c *clock) hold(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held = append(c.held, d)
}

func (c *clock) keptTimers() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kept
}

func (c *clock) AfterFunc(d time.Duration, f func()) pool.Timer {
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.Contains(c.held, d) {
		c.kept++
		return heldTimer{}
	}
	return c.Clock.AfterFunc(d, f)
}

// stillClock stands still until a test moves it, which calls the timers that are due.
type stillClock struct {
	mu     sync.Mutex
	now    time.Duration
	timers map[*stillTimer]time.Duration // that wait, and when they are due
}

type stillTimer struct {
	clock *stillClock
	f     func()
}

func newStillClock() *stillClock {
	return &stillClock{now: time.Hour, timers: map[*stillTimer]time.Duration{}}
}

func (c *stillClock) Now() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *stillClock) AfterFunc(d time.Duration, f func()) pool.Timer {
	t := &stillTimer{c, f}
	t.Reset(d)
	return t
}

func (t *stillTimer) Reset(d time.Duration) bool {
	was := t.Stop()
	t.clock.mu.Lock()
	t.clock.timers[t] = t.clock.now + d
	t.clock.mu.Unlock()
	t.clock.move(0)
	return was
}

func (t *stillTimer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	_, waits := t.clock.timers[t]
	delete(t.clock.timers, t)
	return waits
}

func (c *stillClock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now += d
	for t, due := range c.timers {
		if due <= c.now {
			delete(c.timers, t)
			go t.f()
		}
	}
}

type heldTimer struct{}

func (heldTimer) Stop() bool               { return true }
func (heldTimer) Reset(time.Duration) bool { return true }

// tap listens to what a daemon writes, flush by flush, and lets a test step in
// in front of a flush's first lock.
type tap struct {
	mu      sync.Mutex
	flushes map[string][][]string // by master: every Exchange, a line a command
	amid    func(master string)
	each    bool // amid is called in front of every lock but the first instead
}

// tapped is the trait of a daemon that the tap listens to.
func (p *tap) tapped(d *daemon, o *pool.Options) {
	dial := pool.DialRueidis(2 * o.MasterTimeout)
	o.Dialer = func(ctx context.Context, m pool.Master, db int) (pool.Link, error) {
		inner, err := dial(ctx, m, db)
		if err != nil {
			return nil, err
		}
		return &tappedLink{Link: inner, tap: p, master: m.Name}, nil
	}
}

// before has f called in front of the first lock of every flush from now on.
func (p *tap) before(f func(master string)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.amid, p.each = f, false
}

// between has f called in front of every lock of a flush but the first from now on.
func (p *tap) between(f func(master string)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.amid, p.each = f, true
}

// to are the flushes that went to a master so far.
func (p *tap) to(master string) [][]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.flushes[master])
}

func (p *tap) note(master string, commands []pool.Command) (amid func(string), each bool) {
	lines := make([]string, len(commands))
	for i := range commands {
		lines[i] = strings.Join(commands[i].Args, " ")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.flushes == nil {
		p.flushes = map[string][][]string{}
	}
	p.flushes[master] = append(p.flushes[master], lines)
	return p.amid, p.each
}

type tappedLink struct {
	pool.Link
	tap    *tap
	master string
}

// Exchange splits a flush where the test interferes.
func (l *tappedLink) Exchange(commands []pool.Command, replies []pool.Reply) []pool.Reply {
	amid, each := l.tap.note(l.master, commands)
	if amid == nil {
		return l.Link.Exchange(commands, replies)
	}
	var cuts []int
	for i, c := range commands {
		if c.Args[0] == "SET" || c.Args[0] == "EVALSHA" {
			cuts = append(cuts, i)
		}
	}
	if each && len(cuts) > 0 {
		cuts = cuts[1:]
	} else if len(cuts) > 0 {
		cuts = cuts[:1]
	}
	replies, sent := replies[:0], 0
	for _, at := range cuts {
		if at > sent {
			replies = append(replies, l.Link.Exchange(commands[sent:at], nil)...)
		}
		sent = at
		amid(l.master)
	}
	return append(replies, l.Link.Exchange(commands[sent:], nil)...)
}

// barrier is an operation that only has its place in the queues: what was sent
// before it has been answered when it is. No seal follows it, no register rises.
type barrier struct {
	answered chan pool.Answer // one for each master it is pushed to
}

var _ pool.Operation = (*barrier)(nil)

func (b *barrier) Props() pool.Props    { return pool.Props{} }
func (b *barrier) Propose(int64)        {}
func (b *barrier) Answer(a pool.Answer) { b.answered <- a }
func (b *barrier) Command(_ *pool.SendContext, c *pool.Command) bool {
	c.Set("PING")
	return true
}
