package redlock

// instruments_test.go holds what a test puts between a daemon and the world: a
// clock that stands still, and a tap on what is written to the masters.

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"redlockd/pool"
)

// heartbeat is how often a daemon queries the identity of its masters. The pool has no name for
// it outside; TestDaemon_CanBeMadeBlind checks that it is the one.
const heartbeat = 100 * time.Millisecond

// stillClock stands still until a test moves it, which calls the timers that are due. It is
// moved again only when those calls have returned: a call that read the time before and sets
// its timer after such a move would set it too late, for ever.
type stillClock struct {
	mu     sync.Mutex
	now    time.Duration
	timers map[*stillTimer]time.Duration // that wait, and when they are due
	calls  int                           // of timers, under way
	idle   sync.Cond                     // no call is under way
}

type stillTimer struct {
	clock *stillClock
	f     func()
}

func newStillClock() *stillClock {
	c := &stillClock{now: time.Hour, timers: map[*stillTimer]time.Duration{}}
	c.idle.L = &c.mu
	return c
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
	defer t.clock.mu.Unlock()
	t.clock.timers[t] = t.clock.now + d
	t.clock.callDueLocked()
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
	for c.calls > 0 {
		c.idle.Wait()
	}
	c.now += d
	c.callDueLocked()
}

func (c *stillClock) callDueLocked() {
	for t, due := range c.timers {
		if due <= c.now {
			delete(c.timers, t)
			c.calls++
			go c.call(t.f)
		}
	}
}

func (c *stillClock) call(f func()) {
	f()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls--; c.calls == 0 {
		c.idle.Broadcast()
	}
}

// tap listens to what a daemon writes, flush by flush, and lets a test step in
// in front of a flush's first lock.
type tap struct {
	mu      sync.Mutex
	flushes map[string][][]string // by master: every Exchange, a line a command
	amid    func(master string)
	each    bool // amid is called in front of every lock but the first instead
}

// hook exchanges the commands for a master by calls of exchange.
type hook func(master string, commands []pool.Command, exchange func([]pool.Command) []pool.Reply) []pool.Reply

// hooked puts a hook between a daemon and its masters.
func hooked(o *pool.Options, around hook) {
	dial := pool.DialRueidis(2 * o.MasterTimeout)
	o.Dialer = func(ctx context.Context, m pool.Master, db int) (pool.Link, error) {
		inner, err := dial(ctx, m, db)
		if err != nil {
			return nil, err
		}
		return hookedLink{inner, m.Name, around}, nil
	}
}

type hookedLink struct {
	pool.Link
	master string
	around hook
}

// Exchange appends to no earlier replies if the hook splits the commands.
func (l hookedLink) Exchange(commands []pool.Command, replies []pool.Reply) []pool.Reply {
	return l.around(l.master, commands, func(some []pool.Command) []pool.Reply {
		if len(some) < len(commands) {
			return l.Link.Exchange(some, nil)
		}
		return l.Link.Exchange(some, replies)
	})
}

// tapped is the trait of a daemon that the tap listens to.
func (p *tap) tapped(_ *daemon, o *pool.Options) { hooked(o, p.exchange) }

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

// exchange splits a flush where the test interferes.
func (p *tap) exchange(master string, commands []pool.Command, exchange func([]pool.Command) []pool.Reply) (replies []pool.Reply) {
	amid, each := p.note(master, commands)
	if amid == nil {
		return exchange(commands)
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
	sent := 0
	for _, at := range cuts {
		if at > sent {
			replies = append(replies, exchange(commands[sent:at])...)
		}
		sent = at
		amid(master)
	}
	return append(replies, exchange(commands[sent:])...)
}
