// This file contains the Locker: its options, the calls that request, release and extend
// a lock, and its end.
//
// The path of one lock: Lock queues a plain SET NX PXAT on every master's lane
// (acquire.go). Each answer is a vote (quorum/tally.go) if the seal at the end of its flush is
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
	"sync/atomic"
	"time"

	"redlockd/pool"
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
	pool          *pool.Pool
	options       Options
	masterTimeout time.Duration // the longest time that a flush may take
	late          time.Duration // how much longer copies last than their leases; see pool.Options
	maxTTL        time.Duration
	clock         pool.Clock
	recent        func() time.Duration // the clock, or a cheaper one that is never ahead of it
	script        scripts

	leases     *leaseRecords
	usedFences usedFences
	tokenQueue perTokenQueue
	hot        *hotKeys
	waits      waiters
	workWaits  workWaits
	holds      holds
	holdLog    holdLog
	events     lockEvents
	ids        idCounters
	notes      notes
	daemonName string // the name of this daemon in notes

	inFlight atomic.Int64
	closing  atomic.Bool
	counts   lockCounters
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
	l := &Locker{
		pool: p, options: o, clock: p.Clock(), recent: pool.Recent(p.Clock()),
		masterTimeout: p.Options().MasterTimeout, late: p.Options().Late, maxTTL: p.Options().MaxTTL,
		leases: newLeases(p.Options().MaxTTL), hot: newHotKeys(o.Tokens()), daemonName: daemonName(),
	}
	l.holdLog.clock, l.holdLog.logger = p.Clock(), o.Logger
	l.waits.locker, l.holds.locker, l.events.locker = l, l, l
	l.waits.name = string(NewToken())[:8]
	texts, err := l.script.load()
	if err != nil {
		return nil, err
	}
	p.Start(texts...)
	return l, nil
}

// Lock requests a lock; done is called exactly once. b may be nil; otherwise nothing is
// sent before b.Send.
func (l *Locker) Lock(b *Batch, r LockRequest, done LockDone) {
	if err := l.enter(); err != nil {
		done(Grant{}, err)
		return
	}
	call := &acquireCall{locker: l, group: l.pool.Group(r.DB), request: r, began: l.recent(), done: done}
	if r.bounded() {
		l.hot.enter(b, call)
		return
	}
	call.start(b)
}

// Unlock releases a lock. The result is true if this token held it until now.
func (l *Locker) Unlock(b *Batch, r UnlockRequest, done UnlockDone) {
	if err := l.enter(); err != nil {
		done(false, err)
		return
	}
	id := lockID{r.DB, r.Key, r.Token}
	if l.tokenQueue.idle() {
		l.releaseAs(EventReleased, b, id, nil, r.Trace, done)
		return
	}
	l.tokenQueue.enter(id, b, queuedOperation{run: func(b *Batch) { l.releaseAs(EventReleased, b, id, nil, r.Trace, done) }})
}

// Extend makes a lock that is still held last at least r.TTL from now.
func (l *Locker) Extend(b *Batch, r ExtendRequest, done ExtendDone) {
	if err := l.enter(); err != nil {
		done(Grant{}, err)
		return
	}
	id := lockID{r.DB, r.Key, r.Token}
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
	l.counts.givenBack.Add(1)
	if g.ballot != nil {
		l.holds.endOf(g)
		g.ballot.takeBack()
		for i, key := range g.Keys() {
			l.leases.dropGrant(lockID{g.db, key, g.TokenOf(i)}, g.Fence)
			l.waits.onRelease(nil, dbKey{g.db, key})
		}
		return
	}
	l.inFlight.Add(1) // beyond the limit if necessary: no client has the token
	l.release(nil, lockID{g.db, g.Key, g.Token}, func(bool, error) {})
	for _, key := range g.More {
		l.inFlight.Add(1)
		l.release(nil, lockID{g.db, key, g.Token}, func(bool, error) {})
	}
}

// submit queues an operation, at once or with its read batch.
func (l *Locker) submit(b *Batch, g *pool.Group, op pool.Operation) {
	if b != nil {
		b.Add(g, op)
		return
	}
	var own pool.Batch
	own.Add(g, op)
	own.Send()
}

func (l *Locker) masterKey(k Key) string { return l.options.KeyPrefix + string(k) }

func (l *Locker) enter() error {
	if l.closing.Load() {
		return ErrShutdown
	}
	if n := l.inFlight.Add(1); n > int64(l.options.MaxOperations) {
		l.inFlight.Add(-1)
		return &Busy{What: "operations in flight", Limit: l.options.MaxOperations, Option: "--max-operations"}
	}
	return nil
}

func (l *Locker) leave() { l.inFlight.Add(-1) }

// Masters shows every master as database db's lanes see it.
func (l *Locker) Masters(db int) []MasterStatus { return l.pool.Group(db).Statuses() }

// DrainMaster stops sending new operations to a master, and UndrainMaster resumes; see
// pool.Pool.Drain.
func (l *Locker) DrainMaster(name string) error   { return l.pool.Drain(name) }
func (l *Locker) UndrainMaster(name string) error { return l.pool.Undrain(name) }

// Close rejects new operations. It waits, at most for the timeout, until all operations
// in flight have been answered and all undo commands have left the queues.
func (l *Locker) Close(timeout time.Duration) error {
	l.closing.Store(true)
	for end := l.clock.Now() + timeout; ; {
		busy := int(l.inFlight.Load()) + l.events.busy() + l.pool.Busy()
		if busy == 0 {
			return nil
		}
		if l.clock.Now() > end {
			return errors.New("closed with operations in flight; what they took expires by itself")
		}
		time.Sleep(time.Millisecond)
	}
}
