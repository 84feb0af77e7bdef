package admin

// lookout.go answers: what does everybody see who looks at a database? There is
// one look a second for all viewers together, so that another viewer costs the
// masters nothing; with the last viewer it ends and forgets everything.
//
// A look reads the daemon's own figures, walks on over the locks, and asks the
// masters about single keys: those on somebody's screen and those for which
// somebody waits. What a look may cost the masters is bounded, not how long a walk
// takes: over a hundred thousand locks on three masters, a minute.

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
	// lingering is how long looking goes on without viewers: another search or a
	// reload of the page is a new stream.
	lingering = 5 * time.Second
	// walkStep and walkSteps bound a look's walk: some 7 µs of each master's time
	// for a key that is new, 1 µs of one's for one that another has shown. Measured
	// with a hundred thousand locks: 3 % of each master, 8 % of a core here.
	walkStep  = 1000
	walkSteps = 5
	// mostSingles bounds the keys that are looked at one by one.
	mostSingles = 200
	// mostWaiting are read of those who wait; a thousand are listed in a millisecond.
	mostWaiting = 1000
)

// Looks are what the page shows of locks. Completions are called exactly once.
type Looks interface {
	ReadLock(db int, key redlock.Key, done func(redlock.LockView, error))
	ListLocks(redlock.Listing, func(redlock.LockPage, error))
	Waiting(db int, wanted func(redlock.Key) bool, most int) (list []redlock.Waiting, all int)
	// Listen tells every event until end is called.
	Listen(db int, heard func(redlock.Event)) (end func())
}

var _ Looks = (*redlock.Locker)(nil)

// seen is the outcome of one look; it never changes.
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

// lookout looks at one database. Its registry guards viewers and idle.
type lookout struct {
	db      int
	sources Sources
	book    *book
	news    *news

	viewers int
	idle    time.Time // nobody has looked since

	mu     sync.Mutex
	seen   *seen                    // nil before the first look
	first  chan struct{}            // closed with the first look
	screen map[redlock.Key]struct{} // keys that viewers have before them

	// Of the goroutine that looks.
	charts charts
	gone   absences
	cursor uint64
}

// lookouts are those of all databases that somebody looks at.
type lookouts struct {
	sources Sources
	logger  *slog.Logger

	mu     sync.Mutex
	all    map[int]*lookout
	closed bool
	ctx    context.Context
	end    context.CancelFunc
	under  sync.WaitGroup // goroutines that look
}

func newLookouts(s Sources, logger *slog.Logger) *lookouts {
	l := &lookouts{sources: s, logger: logger, all: map[int]*lookout{}}
	l.ctx, l.end = context.WithCancel(context.Background())
	return l
}

// enter adds a viewer, who must leave; nil when the door has closed.
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

// close ends all looking and waits for it.
func (l *lookouts) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.end()
	l.under.Wait()
}

// run looks until nobody does; close waits for it.
func (l *lookouts) run(o *lookout) {
	defer l.under.Done()
	defer o.sources.Looks.Listen(o.db, o.news.hear)()
	again := time.NewTicker(lookEvery)
	defer again.Stop()
	for !l.over(o) {
		l.contained(o)
		select {
		case <-again.C:
		case <-l.ctx.Done():
		}
	}
}

// contained looks once. A mistake in what is only for people to look at must not
// end a daemon that holds locks.
func (l *lookouts) contained(o *lookout) {
	defer func() {
		if mistake := recover(); mistake != nil {
			l.logger.Error("a look of the page failed; this is a bug", "cause", mistake, "stack", string(debug.Stack()))
		}
	}()
	o.look(l.ctx)
}

// over takes a lookout out that nobody needs.
func (l *lookouts) over(o *lookout) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx.Err() == nil && (o.viewers > 0 || time.Since(o.idle) < lingering) {
		return false
	}
	delete(l.all, o.db)
	return true
}

// look looks once.
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
	everybody := func(redlock.Key) bool { return true }
	s.waiting, _ = o.sources.Looks.Waiting(o.db, everybody, mostWaiting)
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

// last is the last look; none before the first one.
func (o *lookout) last() *seen {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.seen
}

// page is a step of a walk, or why there is none.
type page struct {
	redlock.LockPage
	err error
}

// walk goes on over the locks, to the end at most.
func (o *lookout) walk(ctx context.Context) error {
	for range walkSteps {
		answer := make(chan page, 1) // the one answer must never wait
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

// show adds keys to those that are looked at one by one, until the next look.
func (o *lookout) show(entries []*entry) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range entries {
		if len(o.screen) < mostSingles {
			o.screen[e.key] = struct{}{}
		}
	}
}

// seek has a key looked at that may have been searched for by its whole name: it
// is found at once, however far the walk is.
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

// single is what the masters say of one key.
type single struct {
	key  redlock.Key
	view redlock.LockView
	err  error
}

// singles looks at keys one by one: those on screens, and as many of those that
// have been waited for longest.
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
	answers := make(chan single, len(keys)) // no answer must ever wait
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
