package pool

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"redlockd/pool/masterlog"
	"redlockd/pool/wire"
)

// Pool is N independent masters, used by all databases' lanes on one bounded
// pool of goroutines.
type Pool struct {
	options   Options // Masters are those at the start, see Pool.Masters
	masters   atomic.Pointer[[]Master]
	prefixes  atomic.Pointer[[]string] // of keys, of all daemons of the group
	slots     slotMap
	dial      Dialer
	track     TrackDialer // nil: no tracking, waiters poll
	inProcess inProcess   // masters, if there are no real ones
	tasks     Tasks
	scripts   []string

	daemons     sync.Map                       // by a master's name: the daemons that it listed last
	drained     [maxMasters]atomic.Int64       // since when each master is being drained, ns of Clock; 0 = it is not
	lastLines   map[string]*masterlog.LastLine // about each master; guarded by mu
	listenedDBs atomic.Int32                   // databases whose events have a listener, see package notify

	mu     sync.Mutex
	groups map[int]*Group // by database, made on first use
	closed bool
}

// New checks the options and prepares a pool; nothing is dialled before Start.
func New(o Options) (*Pool, error) {
	if err := o.WithDefaults(); err != nil {
		return nil, err
	}
	p := &Pool{options: o, groups: map[int]*Group{}, lastLines: map[string]*masterlog.LastLine{}, dial: o.Dialer}
	if o.Embedded > 0 {
		p.inProcess.start(&p.options)
		p.dial = p.inProcess.dial
	}
	p.masters.Store(&p.options.Masters)
	p.prefixes.Store(&p.options.Prefixes)
	p.slots.onConfiguration = o.OnConfiguration
	if p.dial == nil {
		p.dial = wire.DialLane(p.options.DialTimeout(), p.options.StallTimeout())
	}
	if p.track = p.options.Tracker; p.track == nil && o.Dialer == nil {
		p.track = wire.DialTracking(p.options.DialTimeout())
	}
	if p.tasks = p.options.Tasks; p.tasks == nil {
		var err error
		if p.tasks, err = newGoroutines(maxMasters, p.options.Databases, p.options.Logger); err != nil {
			return nil, fmt.Errorf("task pool: %w", err)
		}
	}
	return p, nil
}

// Start dials the masters for database 0 and waits, briefly, until each of them
// has been tried once. The scripts are loaded on every connection before it may vote,
// and by the flush after one that found them lost.
func (p *Pool) Start(scripts ...string) *Group {
	p.scripts = scripts
	g := p.Group(0)
	for end := p.Clock().Now() + 2*p.options.DialTimeout(); g.firstDials() && p.Clock().Now() < end; {
		p.tasks.Sleep(time.Millisecond)
	}
	return g
}

// Group returns the lanes of one database and starts them on first use.
func (p *Pool) Group(db int) *Group {
	p.mu.Lock()
	defer p.mu.Unlock()
	if g := p.groups[db]; g != nil {
		return g
	}
	g := newGroup(p, db)
	if first := p.groups[0]; first != nil {
		g.copyClock(first)
	}
	p.groups[db] = g
	if !p.closed {
		g.start()
	}
	return g
}

// Masters is the list now, by lane. It is not to be changed.
func (p *Pool) Masters() []Master { return *p.masters.Load() }

// Options returns the options with their defaults filled in.
func (p *Pool) Options() Options {
	o := p.options
	o.Masters, o.Prefixes = p.Masters(), *p.prefixes.Load()
	p.slots.set(&o)
	return o
}

func (p *Pool) embedded() bool { return p.inProcess.masters != nil }

// Jitter is a random delay below limit, for the packages above this one.
func (p *Pool) Jitter(limit time.Duration) time.Duration { return p.options.Jitter(limit) }

// Clock is the clock for the packages above this one.
func (p *Pool) Clock() Clock { return p.options.Clock }

// Close ends all connections; operations under way are answered with an error.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	groups := p.groups
	p.groups = map[int]*Group{}
	p.mu.Unlock()
	for _, g := range groups {
		g.close()
	}
	p.tasks.Release(5 * time.Second)
	if p.embedded() {
		p.inProcess.masters.Close()
	}
}
