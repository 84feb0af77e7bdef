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
	lookEvery = time.Second
	// idlePolling is how long polling goes on without viewers: another search or a
	// reload of the page is a new stream.
	lingering = 5 * time.Second
	// walkStep and walkSteps bound the walk of one poll: some 7 µs of each master's time
	// for a new key, 1 µs of one master's for a key that another master has returned.
	// Measured with a hundred thousand locks: 3 % of each master, 8 % of a core here.
	walkStep  = 1000
	walkSteps = 5
	// maxSingles bounds the keys that are read one by one.
	mostSingles = 200
	// maxWaiting bounds the waiters that are read; a thousand are listed in a millisecond.
	mostWaiting = 1000
)

// LockReader reads locks for the page. Completions are called exactly once.
type Looks interface {
	ReadLock(db int, key redlock.Key, done func(redlock.LockView, error))
	ListLocks(redlock.Listing, func(redlock.LockPage, error))
	Waiting(db int, wanted func(redlock.Key) bool, limit int) (list []redlock.Waiting, all int)
	// Listen reports every event until end is called.
	Listen(db int, onEvent func(redlock.Event)) (end func())
}

var _ Looks = (*redlock.Locker)(nil)

// snapshot is the result of one poll; it never changes.
type seen struct {
	at      time.Time
	reports []redlock.MasterReport
	gone    map[string]absence
	charts  charts
	waiting []redlock.Waiting
	list    list
	trouble string // why the locks may be incomplete
	next    chan struct{}
}

// poller polls one database. Its registry guards viewers and idleSince.
type lookout struct {
	db      int
	sources Sources
	book    *book
	news    *news

	viewers int
	idle    time.Time // without viewers since

	mu     sync.Mutex
	seen   *seen                    // nil before the first poll
	first  chan struct{}            // closed with the first poll
	screen map[redlock.Key]struct{} // keys on viewers' screens

	// Of the polling goroutine.
	charts charts
	gone   absences
	cursor uint64
}

// pollers contains the pollers of all databases with viewers.
type lookouts struct {
	sources Sources
	logger  *slog.Logger

	mu     sync.Mutex
	all    map[int]*lookout
	closed bool
	ctx    context.Context
	end    context.CancelFunc
	under  sync.WaitGroup // polling goroutines
}

func newLookouts(s Sources, logger *slog.Logger) *lookouts {
	l := &lookouts{sources: s, logger: logger, all: map[int]*lookout{}}
	l.ctx, l.end = context.WithCancel(context.Background())
	return l
}

// addViewer adds a viewer, to be removed by removeViewer; nil when the endpoint is closed.
func (l *lookouts) enter(db int) *lookout {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	o := l.all[db]
	if o == nil {
		o = &lookout{
			db: db, sources: l.sources, book: newBook(), news: &news{}, gone: absences{},
			first: make(chan struct{}), screen: map[redlock.Key]struct{}{},
		}
		l.all[db] = o
		l.under.Add(1)
		go l.run(o)
	}
	o.viewers++
	return o
}

func (l *lookouts) leave(o *lookout) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o.viewers--
	o.idle = time.Now()
}

// close ends all pollers and waits for them.
func (l *lookouts) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.end()
	l.under.Wait()
}

// run polls until there are no viewers; close waits for it.
func (l *lookouts) run(o *lookout) {
	defer l.under.Done()
	defer o.sources.Looks.Listen(o.db, o.news.hear)()
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for !l.over(o) {
		l.contained(o)
		select {
		case <-ticker.C:
		case <-l.ctx.Done():
		}
	}
}

// pollSafely polls once. A bug in code that only displays data must not end a daemon that
// holds locks.
func (l *lookouts) contained(o *lookout) {
	defer func() {
		if value := recover(); value != nil {
			l.logger.Error("panic recovered in a poll of the page; this is a bug", "err", value, "stack", string(debug.Stack()))
		}
	}()
	o.look(l.ctx)
}

// removeIfIdle removes a poller that has had no viewers for idlePolling.
func (l *lookouts) over(o *lookout) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx.Err() == nil && (o.viewers > 0 || time.Since(o.idle) < lingering) {
		return false
	}
	delete(l.all, o.db)
	return true
}

// poll polls once.
func (o *lookout) look(ctx context.Context) {
	now, s := time.Now(), &seen{next: make(chan struct{})}
	s.reports = o.sources.Locks.Reports(o.db)
	o.gone.note(s.reports, now)
	s.gone = make(map[string]absence, len(o.gone))
	for name, one := range o.gone {
		s.gone[name] = one
	}
	trips := make(map[string]pool.Histogram, len(s.reports))
	for i := range s.reports {
		trips[s.reports[i].Name] = s.reports[i].RTT
	}
	o.charts.note(sample{at: now, counts: o.sources.Locks.Counters(), locks: o.sources.Grants.locks.all.load(), masters: trips})
	s.charts = o.charts
	everyKey := func(redlock.Key) bool { return true }
	s.waiting, _ = o.sources.Looks.Waiting(o.db, everyKey, mostWaiting)
	if err := o.walk(ctx); err != nil {
		s.trouble = err.Error()
	}
	o.singles(ctx, s.waiting)
	s.at = time.Now()
	o.book.sweep(s.at)
	s.list = o.book.list()
	o.publish(s)
}

// publish wakes all viewers.
func (o *lookout) publish(s *seen) {
	o.mu.Lock()
	before := o.seen
	o.seen = s
	o.mu.Unlock()
	if before == nil {
		close(o.first)
	} else {
		close(before.next)
	}
}

// snapshot returns the latest snapshot, nil before the first poll.
func (o *lookout) last() *seen {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.seen
}

// walkStepResult is a step of a walk, or its error.
type page struct {
	redlock.LockPage
	err error
}

// walk continues the walk over the locks, to the end at most.
func (o *lookout) walk(ctx context.Context) error {
	for range walkSteps {
		answer := make(chan page, 1) // the one answer must never block
		o.sources.Looks.ListLocks(redlock.Listing{DB: o.db, Cursor: o.cursor, Count: walkStep, Wanted: o.book.met.wants},
			func(p redlock.LockPage, err error) { answer <- page{p, err} })
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
				o.book.put(p.Locks[i].Key, &p.Locks[i].View, now, false)
			}
			if o.cursor = p.Cursor; o.cursor == 0 {
				o.book.endPass()
				return nil
			}
		}
	}
	return nil
}

// addKeys adds keys to those that are read one by one, until the next poll.
func (o *lookout) show(entries []*entry) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range entries {
		if len(o.screen) < mostSingles {
			o.screen[e.key] = struct{}{}
		}
	}
}

// addKey reads a key with the next poll that may have been searched for by its whole name:
// it is found at once, however far the walk is.
func (o *lookout) seek(key redlock.Key) {
	if key == "" || strings.HasPrefix(string(key), "redlockd:") || o.book.of(key) != nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.screen) < mostSingles {
		o.screen[key] = struct{}{}
	}
}

// singleResult is the state of one key on the masters.
type single struct {
	key  redlock.Key
	view redlock.LockView
	err  error
}

// readSingles reads keys one by one: those on screens, and as many of those with the
// longest waits.
func (o *lookout) singles(ctx context.Context, waiting []redlock.Waiting) {
	o.mu.Lock()
	keys := o.screen
	o.screen = map[redlock.Key]struct{}{}
	o.mu.Unlock()
	for i := range waiting {
		for _, key := range waiting[i].Keys {
			if len(keys) < 2*mostSingles {
				keys[key] = struct{}{}
			}
		}
	}
	answers := make(chan single, len(keys)) // no answer must ever block
	for key := range keys {
		o.sources.Looks.ReadLock(o.db, key, func(v redlock.LockView, err error) { answers <- single{key, v, err} })
	}
	for range len(keys) {
		select {
		case <-ctx.Done():
			return
		case s := <-answers:
			if s.err == nil {
				o.book.put(s.key, &s.view, time.Now(), true)
			}
		}
	}
}
