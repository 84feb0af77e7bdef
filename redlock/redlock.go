// This file contains the Locker: its options, the calls that request, release and extend
// a lock, and its end.
//
// The path of one lock: Lock queues a plain SET NX PXAT on every master's lane
// (acquire.go, engine/ballot.go). Each answer is a vote (quorum/tally.go) if the seal at the end of its flush is
// good. At a quorum of yes votes, the fence is chosen (quorum/fence.go), the remaining lease is
// computed (quorum/validity.go) and the grant is handed over. Nothing is cancelled: the
// remaining masters are the lease's fault tolerance. Without a quorum, every copy that
// was or may have been made is taken back (undo.go). Unlock (release.go) and Extend
// (extend.go) follow on the same lanes.

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
	// Tokens makes the tokens of requests that have none; default NewToken.
	Tokens func() Token
	Logger *slog.Logger
}

// Locker grants, extends and releases locks by a quorum of masters.
type Locker struct {
	*ids.IDs
	*work.Works
	*events.Events
	engine  *engine.Engine
	options Options

	leases     *leaseRecords
	usedFences usedFences
	tokenQueue perTokenQueue
	hot        *hotKeys
	waits      waiters
	holds      holds
	holdLog    holdLog
	notes      notes
	daemonName string // the name of this daemon in notes
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
		o.Tokens = NewToken
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	e, texts, err := engine.New(p, o.KeyPrefix, o.MaxOperations)
	if err != nil {
		return nil, err
	}
	l := &Locker{
		IDs: ids.New(e, o.VolatileIDs), Events: events.New(e), engine: e, options: o,
		leases: newLeases(p.Options().MaxTTL), hot: newHotKeys(o.Tokens()), daemonName: daemonName(),
	}
	l.holdLog.clock, l.holdLog.logger = p.Clock(), o.Logger
	l.Works = work.New(e, &l.waits)
	l.waits.locker, l.holds.locker = l, l
	l.waits.name = string(NewToken())[:8]
	p.Start(texts...)
	return l, nil
}

// Lock requests a lock; done is called exactly once. b may be nil; otherwise nothing is
// sent before b.Send.
func (l *Locker) Lock(b *Batch, r LockRequest, done LockDone) {
	if err := l.engine.Enter(); err != nil {
		done(Grant{}, err)
		return
	}
	call := &acquireCall{locker: l, group: l.engine.Pool.Group(r.DB), request: r, began: l.engine.Recent(), done: done}
	if r.bounded() {
		l.hot.enter(b, call)
		return
	}
	call.start(b)
}

// Unlock releases a lock. The result is true if this token held it until now.
func (l *Locker) Unlock(b *Batch, r UnlockRequest, done UnlockDone) {
	if err := l.engine.Enter(); err != nil {
		done(false, err)
		return
	}
	id := Lease{DB: r.DB, Key: r.Key, Token: r.Token}
	if l.tokenQueue.idle() {
		l.releaseAs(events.Released, b, id, nil, r.Trace, done)
		return
	}
	l.tokenQueue.enter(id, b, queuedOperation{run: func(b *Batch) { l.releaseAs(events.Released, b, id, nil, r.Trace, done) }})
}

// Extend makes a lock that is still held last at least r.TTL from now.
func (l *Locker) Extend(b *Batch, r ExtendRequest, done ExtendDone) {
	if err := l.engine.Enter(); err != nil {
		done(Grant{}, err)
		return
	}
	id := Lease{DB: r.DB, Key: r.Key, Token: r.Token}
	if l.tokenQueue.idle() {
		l.extend(b, r, done)
		return
	}
	l.tokenQueue.enter(id, b, queuedOperation{run: func(b *Batch) { l.extend(b, r, done) }})
}

// undelivered handles a grant whose client has left. What its token held before stays as
// it was, but its renewal ends, because no client is left to end it.
func (l *Locker) undelivered(g Grant) {
	if g.Fresh {
		l.GiveBack(g)
		return
	}
	l.holds.endOf(g)
}

// GiveBack releases a grant that never reached its holder.
func (l *Locker) GiveBack(g Grant) {
	l.engine.Counts.GivenBack.Add(1)
	if g.ballot != nil {
		l.holds.endOf(g)
		g.ballot.takeBack()
		for i, key := range g.Keys() {
			l.leases.dropGrant(Lease{DB: g.db, Key: key, Token: g.TokenOf(i)}, g.Fence)
			l.waits.onRelease(nil, dbKey{g.db, key})
		}
		return
	}
	l.engine.EnterAlways() // beyond the limit if necessary: no client has the token
	l.release(nil, Lease{DB: g.db, Key: g.Key, Token: g.Token}, func(bool, error) {})
	for _, key := range g.More {
		l.engine.EnterAlways()
		l.release(nil, Lease{DB: g.db, Key: key, Token: g.Token}, func(bool, error) {})
	}
}

// Masters shows every master as database db's lanes see it.
func (l *Locker) Masters(db int) []MasterStatus { return l.engine.Pool.Group(db).Statuses() }

// DrainMaster stops sending new operations to a master, and UndrainMaster resumes; see
// pool.Pool.Drain.
func (l *Locker) DrainMaster(name string) error   { return l.engine.Pool.Drain(name) }
func (l *Locker) UndrainMaster(name string) error { return l.engine.Pool.Undrain(name) }

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
