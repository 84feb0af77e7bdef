// This file contains the Locker: its options, what it is made of, and its end.

package redlock

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/events"
	"redlockd/redlock/ids"
	"redlockd/redlock/inspect"
	"redlockd/redlock/lease"
	"redlockd/redlock/maxhold"
	"redlockd/redlock/renew"
	"redlockd/redlock/track"
	"redlockd/redlock/wait"
	"redlockd/redlock/work"
)

// Options of a Locker. Zero means the default named at the field.
type Options struct {
	KeyPrefix     string // stands before every key on the masters
	MaxOperations int    // operations in flight at once; 100 000
	// MaxWaiters bounds the waiting requests, over all keys; 100 000. Each costs less
	// than 1 kB and no goroutine. MaxWaitersPerKey: 10 000.
	MaxWaiters, MaxWaitersPerKey int
	// VolatileIDs allows counters on masters that may forget the last ids in a crash. A
	// crash of a quorum may then repeat ids.
	VolatileIDs bool
	// LockInfo notes every holder on the masters, not only holders that give META. It
	// costs one more short command for a grant and one more for a release, on each
	// master.
	LockInfo bool
	// Tokens makes the tokens of requests that have none; default those of this daemon, engine.TokensOf.
	Tokens func() Token
	Logger *slog.Logger
	// Ownership is which keys the group has, of several groups; nil: all.
	Ownership engine.Ownership
}

// Locker is the locks, ids and work of a daemon.
type Locker struct {
	*lease.Leases
	*inspect.Inspector
	*events.Events
	*ids.IDs
	*work.Works
	*wait.Queues
	*track.Tracks
	engine  *engine.Engine
	holds   *renew.Holds
	maxHold *maxhold.MaxHold
	short   *lease.ShortLeases
}

// New starts the pool's lanes and returns a Locker on them.
func New(p *pool.Pool, o Options) (*Locker, error) {
	if o.MaxOperations == 0 {
		o.MaxOperations = 100_000
	}
	if o.MaxOperations < 0 {
		return nil, fmt.Errorf("max-operations: %d, at least 1 is needed", o.MaxOperations)
	}
	if o.MaxWaiters == 0 {
		o.MaxWaiters = 100_000
	}
	if o.MaxWaitersPerKey == 0 {
		o.MaxWaitersPerKey = 10_000
	}
	if o.MaxWaiters < 0 || o.MaxWaitersPerKey < 0 {
		return nil, fmt.Errorf("max-waiters: %d, max-waiters-per-key: %d, at least 1 is needed", o.MaxWaiters, o.MaxWaitersPerKey)
	}
	if o.Tokens == nil {
		o.Tokens = engine.TokensOf(pool.DaemonName())
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	e, texts, err := engine.New(p, o.KeyPrefix, o.MaxOperations)
	if err != nil {
		return nil, err
	}
	e.Ownership = o.Ownership
	l := &Locker{IDs: ids.New(e, o.VolatileIDs), Events: events.New(e), engine: e}
	l.Leases = lease.New(e, l.Events, o.Tokens, o.LockInfo)
	l.short = lease.WatchShortLeases(l.Leases, o.Logger)
	l.Queues = wait.New(e, l.Leases, o.MaxWaiters, o.MaxWaitersPerKey)
	l.Works = work.New(e, l.AwaitWork, l.Freed)
	l.Tracks = track.New(e, l.Leases)
	l.holds = renew.New(e, l.Events, l.Leases, o.Logger)
	l.Inspector = inspect.New(e, l.Leases, o.Logger, inspect.Local{Waiters: l.CountAt, Wanted: l.holds.WantedText, Renews: l.holds.Renews})
	l.maxHold = maxhold.New(e, l.Leases, l.Inspector, l.Events)
	l.Connect(l.Freed, l.holds)
	p.Start(texts...)
	return l, nil
}

// Lock, Wait, Unlock, Extend and Write are those of the leases and their waits, within the longest time of each hold.
func (l *Locker) Lock(b *Batch, r LockRequest, done LockDone) {
	l.maxHold.Lock(b, r.alone(), l.holding(&r, done))
}
func (l *Locker) Wait(b *Batch, r LockRequest, done LockDone) (leave func()) {
	return l.maxHold.Wait(b, r.plain(), l.holding(&r, done), func(b *Batch, within lease.LockRequest, done LockDone) (leave func()) {
		waits := r.waits()
		waits.LockRequest = within
		return l.Queues.Wait(b, waits, done)
	})
}
func (l *Locker) Unlock(b *Batch, r UnlockRequest, done UnlockDone) { l.maxHold.Unlock(b, r, done) }
func (l *Locker) Extend(b *Batch, r ExtendRequest, done ExtendDone) { l.maxHold.Extend(b, r, done) }
func (l *Locker) Write(b *Batch, r WriteRequest, done WriteDone)    { l.maxHold.Write(b, r, done) }

// holding begins the renewal of a grant before its client receives it.
func (l *Locker) holding(r *LockRequest, done LockDone) LockDone {
	if r.Hold == nil {
		return done
	}
	terms := *r.Hold
	return func(g Grant, err error) {
		if err == nil {
			l.Hold(g, terms)
		}
		done(g, err)
	}
}

// Hold renews a new grant. The deadline of its longest time goes with it.
func (l *Locker) Hold(g Grant, terms HoldTerms) Hold {
	onEnd := terms.OnEnd
	terms.OnEnd = func(g Grant, reason error, goesOn time.Duration) {
		l.maxHold.Forget(&g)
		onEnd(g, reason, goesOn)
	}
	return l.holds.Begin(g, terms)
}

// GiveBack gives back a grant that never reached its holder. Its renewal ends before.
func (l *Locker) GiveBack(g Grant) {
	if hold := l.holds.Of(&g); hold != nil {
		hold.Abandon(nil)
	}
	l.Leases.GiveBack(g)
}

// Masters shows every master as database db's lanes see it.
func (l *Locker) Masters(db int) []MasterStatus { return l.engine.Pool.Group(db).Statuses() }

// DrainMaster stops sending new operations to a master, and UndrainMaster resumes; see
// pool.Pool.Drain.
func (l *Locker) DrainMaster(name string) error   { return l.engine.Pool.Drain(name) }
func (l *Locker) UndrainMaster(name string) error { return l.engine.Pool.Undrain(name) }

// RefuseWaits announces the end of this daemon: it answers new waits with ErrShutdown.
func (l *Locker) RefuseWaits() { l.Queues.Refuse() }

// EndWaits begins the end of this daemon. It answers every waiter with ErrShutdown and
// admits no new ones. Holds that end from here on are not released. Nothing is tracked anymore.
func (l *Locker) EndWaits() {
	l.holds.Drain()
	l.Queues.End()
	l.Tracks.End()
}

// DropMoved ends what waits in this group for keys that have left it: waiters receive a *Moving error,
// and trackers a report. It notifies the connections that hold such keys.
func (l *Locker) DropMoved() {
	l.holds.WantedMoved()
	l.Queues.DropMoved()
	l.Tracks.DropMoved()
	l.IDs.DropMoved()
}

// Revoke requests that the holders of a key let go: it notifies listeners, and the connections that hold it
// with HOLD, of all daemons, and answers how many these are. The lock stays as it is.
func (l *Locker) Revoke(db int, key Key, text string, done func(int, error)) {
	l.Emit(events.Wanted, Lease{DB: db, Key: key}, 0, 0)
	l.holds.Revoke(db, key, text, done)
}

// Holds counts the leases that are being renewed.
func (l *Locker) Holds() int { return l.holds.Count() }

// Close rejects new operations. It waits, at most for the timeout, until all operations
// in flight have been answered and all undo commands have left the queues.
func (l *Locker) Close(timeout time.Duration) error {
	l.engine.Close()
	return l.untilIdle(timeout)
}

func (l *Locker) untilIdle(timeout time.Duration) error {
	for end := l.engine.Clock.Now() + timeout; ; {
		busy := l.engine.InFlight() + l.Events.Busy() + l.engine.Pool.Busy()
		if busy == 0 {
			return nil
		}
		if l.engine.Clock.Now() > end {
			return errors.New("closed with operations in flight; what they took expires by itself")
		}
		time.Sleep(time.Millisecond)
	}
}

// Counters returns the counts since the start.
func (l *Locker) Counters() Counters {
	var c Counters
	c.Held, c.HeldFor = l.Held()
	c.ShortOver = l.short.Over()
	engine.Load(&l.engine.Counts, &c.Counts)
	return c
}

// MasterCounters count what passes between this daemon and its masters.
func (l *Locker) MasterCounters() pool.Counters { return l.engine.Pool.Counters() }

// MasterReport is one master with all that is measured of it, see pool.Report.
type MasterReport = pool.MasterReport

// Reports shows every master as database db's lanes see it.
func (l *Locker) Reports(db int) []MasterReport { return l.engine.Pool.Reports(db) }

// InFlight counts the operations that have not been answered yet.
func (l *Locker) InFlight() int { return l.engine.InFlight() }
