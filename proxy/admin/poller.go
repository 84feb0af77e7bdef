package admin

// poller.go polls the state of one database for all its viewers. There is one poll a
// second for all viewers together, so that another viewer costs the masters nothing;
// with the last viewer the poller ends and drops its data.
//
// A poll reads the daemon's own counters, continues the walk over the locks, and reads
// single keys from the masters: those on a viewer's screen and those with waiters. The
// cost of a poll for the masters is bounded, the duration of a walk is not: over a hundred
// thousand locks on three masters it takes a minute.

import (
	"context"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"redlockd/pool"
	"redlockd/redlock"
)

const (
	pollInterval = time.Second
	// idlePolling is how long polling goes on without viewers: another search or a
	// reload of the page is a new stream.
	idlePolling = 5 * time.Second
	// walkStep and walkSteps bound the walk of one poll: some 7 µs of each master's time
	// for a new key, 1 µs of one master's for a key that another master has returned.
	// Measured with a hundred thousand locks: 3 % of each master, 8 % of a core here.
	walkStep  = 1000
	walkSteps = 5
	// maxSingles bounds the keys that are read one by one.
	maxSingles = 200
	// maxWaiting bounds the waiters that are read; a thousand are listed in a millisecond.
	maxWaiting = 1000
)

// LockReader reads locks for the page. Completions are called exactly once.
type LockReader interface {
	ReadLock(db int, key redlock.Key, done func(redlock.LockView, error))
	ListLocks(redlock.Listing, func(redlock.LockPage, error))
	Waiting(db int, wanted func(redlock.Key) bool, limit int) (list []redlock.Waiting, all int)
	// Listen reports every event until end is called.
	Listen(db int, onEvent func(redlock.Event)) (end func())
}

var _ LockReader = (*redlock.Locker)(nil)

// snapshot is the result of one poll; it never changes.
type snapshot struct {
	at      time.Time
	reports []redlock.MasterReport
	outages map[string]outage
	charts  charts
	waiting []redlock.Waiting
	list    lockSet
	listErr string // why the locks may be incomplete
	next    chan struct{}
}

// poller polls one database. Its registry guards viewers and idleSince.
type poller struct {
	db      int
	sources Sources
	cache   *lockCache
	events  *eventRing

	viewers   int
	idleSince time.Time // without viewers since

	mu       sync.Mutex
	latest   *snapshot                // nil before the first poll
	first    chan struct{}            // closed with the first poll
	onScreen map[redlock.Key]struct{} // keys on viewers' screens

	// Of the polling goroutine.
	charts  charts
	outages outages
	cursor  uint64
}

// pollers contains the pollers of all databases with viewers.
type pollers struct {
	sources Sources
	logger  *slog.Logger

	mu      sync.Mutex
	all     map[int]*poller
	closed  bool
	ctx     context.Context
	end     context.CancelFunc
	running sync.WaitGroup // polling goroutines
}

func newPollers(s Sources, logger *slog.Logger) *pollers {
	l := &pollers{sources: s, logger: logger, all: map[int]*poller{}}
	l.ctx, l.end = context.WithCancel(context.Background())
	return l
}

// addViewer adds a viewer, to be removed by removeViewer; nil when the endpoint is closed.
func (l *pollers) addViewer(db int) *poller {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	o := l.all[db]
	if o == nil {
		o = &poller{
			db: db, sources: l.sources, cache: newLockCache(), events: &eventRing{}, outages: outages{},
			first: make(chan struct{}), onScreen: map[redlock.Key]struct{}{},
		}
		l.all[db] = o
		l.running.Add(1)
		go l.run(o)
	}
	o.viewers++
	return o
}

func (l *pollers) removeViewer(o *poller) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o.viewers--
	o.idleSince = time.Now()
}

// close ends all pollers and waits for them.
func (l *pollers) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.end()
	l.running.Wait()
}

// run polls until there are no viewers; close waits for it.
func (l *pollers) run(o *poller) {
	defer l.running.Done()
	defer o.sources.Reader.Listen(o.db, o.events.add)()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for !l.removeIfIdle(o) {
		l.pollSafely(o)
		select {
		case <-ticker.C:
		case <-l.ctx.Done():
		}
	}
}

// pollSafely polls once. A bug in code that only displays data must not end a daemon that
// holds locks.
func (l *pollers) pollSafely(o *poller) {
	defer func() {
		if value := recover(); value != nil {
			l.logger.Error("panic recovered in a poll of the page; this is a bug", "err", value, "stack", string(debug.Stack()))
		}
	}()
	o.poll(l.ctx)
}

// removeIfIdle removes a poller that has had no viewers for idlePolling.
func (l *pollers) removeIfIdle(o *poller) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx.Err() == nil && (o.viewers > 0 || time.Since(o.idleSince) < idlePolling) {
		return false
	}
	delete(l.all, o.db)
	return true
}

// poll polls once.
func (o *poller) poll(ctx context.Context) {
	now, s := time.Now(), &snapshot{next: make(chan struct{})}
	s.reports = o.sources.Locks.Reports(o.db)
	o.outages.note(s.reports, now)
	s.outages = make(map[string]outage, len(o.outages))
	for name, one := range o.outages {
		s.outages[name] = one
	}
	trips := make(map[string]pool.Histogram, len(s.reports))
	for i := range s.reports {
		trips[s.reports[i].Name] = s.reports[i].RTT
	}
	o.charts.note(sample{at: now, counts: o.sources.Locks.Counters(), locks: o.sources.Latencies.locks.all.load(), masters: trips})
	s.charts = o.charts
	everyKey := func(redlock.Key) bool { return true }
	s.waiting, _ = o.sources.Reader.Waiting(o.db, everyKey, maxWaiting)
	if err := o.walk(ctx); err != nil {
		s.listErr = err.Error()
	}
	o.readSingles(ctx, s.waiting)
	s.at = time.Now()
	o.cache.sweep(s.at)
	s.list = o.cache.list()
	o.publish(s)
}

// publish wakes all viewers.
func (o *poller) publish(s *snapshot) {
	o.mu.Lock()
	before := o.latest
	o.latest = s
	o.mu.Unlock()
	if before == nil {
		close(o.first)
	} else {
		close(before.next)
	}
}

// snapshot returns the latest snapshot, nil before the first poll.
func (o *poller) snapshot() *snapshot {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.latest
}

// walkStepResult is a step of a walk, or its error.
type walkStepResult struct {
	redlock.LockPage
	err error
}

// walk continues the walk over the locks, to the end at most.
func (o *poller) walk(ctx context.Context) error {
	for range walkSteps {
		answer := make(chan walkStepResult, 1) // the one answer must never block
		o.sources.Reader.ListLocks(redlock.Listing{DB: o.db, Cursor: o.cursor, Count: walkStep, Wanted: o.cache.visited.needsVisit},
			func(p redlock.LockPage, err error) { answer <- walkStepResult{p, err} })
		select {
		case <-ctx.Done():
			return ctx.Err()
		case p := <-answer:
			if p.err != nil {
				o.cursor = 0
				return p.err
			}
			now := time.Now()
			for i := range p.Locks {
				o.cache.put(p.Locks[i].Key, &p.Locks[i].View, now, false)
			}
			if o.cursor = p.Cursor; o.cursor == 0 {
				o.cache.endPass()
				return nil
			}
		}
	}
	return nil
}

// addKeys adds keys to those that are read one by one, until the next poll.
func (o *poller) addKeys(entries []*cachedLock) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range entries {
		if len(o.onScreen) < maxSingles {
			o.onScreen[e.key] = struct{}{}
		}
	}
}

// addKey reads a key with the next poll that may have been searched for by its whole name:
// it is found at once, however far the walk is.
func (o *poller) addKey(key redlock.Key) {
	if key == "" || strings.HasPrefix(string(key), "redlockd:") || o.cache.get(key) != nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.onScreen) < maxSingles {
		o.onScreen[key] = struct{}{}
	}
}

// singleResult is the state of one key on the masters.
type singleResult struct {
	key  redlock.Key
	view redlock.LockView
	err  error
}

// readSingles reads keys one by one: those on screens, and as many of those with the
// longest waits.
func (o *poller) readSingles(ctx context.Context, waiting []redlock.Waiting) {
	o.mu.Lock()
	keys := o.onScreen
	o.onScreen = map[redlock.Key]struct{}{}
	o.mu.Unlock()
	for i := range waiting {
		for _, key := range waiting[i].Keys {
			if len(keys) < 2*maxSingles {
				keys[key] = struct{}{}
			}
		}
	}
	answers := make(chan singleResult, len(keys)) // no answer must ever block
	for key := range keys {
		o.sources.Reader.ReadLock(o.db, key, func(v redlock.LockView, err error) { answers <- singleResult{key, v, err} })
	}
	for range len(keys) {
		select {
		case <-ctx.Done():
			return
		case s := <-answers:
			if s.err == nil {
				o.cache.put(s.key, &s.view, time.Now(), true)
			}
		}
	}
}
