// This file releases a lock: how the masters' answers are counted, what the caller
// receives, and how the release goes on after the answer until every copy is gone.

package redlock

import (
	"strconv"
	"sync"
	"time"

	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/quorum"
)

// release is answered by every lane exactly once.
type release struct {
	locker *Locker
	group  *pool.Group
	id     lockID
	key    string
	copies uint16    // bits: masters that may hold a copy
	valid  bool      // this daemon's own record shows that the lease still runs
	fence  Fence     // of its grant; 0 = not known
	event  EventKind // the event that is emitted
	start  time.Duration
	scope  *releaseScope // nil = every copy
	done   UnlockDone

	mu        sync.Mutex
	missing   engine.Missing
	deleted   int // a: the copy is gone now
	absent    int // z: certainly held no copy before
	uncounted int // u: no answer that proves anything
	over      bool
}

// releaseScope limits a release to copies that end up to some time after the release was
// requested, or up to the expiry that was written on that master.
type releaseScope struct {
	upTo  time.Duration
	wrote *[quorum.MaxMasters]int64 // ms of each master's clock; only the lane itself reads its entry
}

var _ pool.BulkOperation = (*release)(nil)

func (l *Locker) release(b *Batch, id lockID, done UnlockDone) {
	l.releaseAs(EventReleased, b, id, nil, nil, done)
}

// releaseAs is release with the event that listeners receive. It spares copies outside
// its scope; nil = none.
func (l *Locker) releaseAs(event EventKind, b *Batch, id lockID, only *releaseScope, t *Trace, done UnlockDone) {
	now := l.engine.Recent()
	// The lease is forgotten before the release is queued: from here on no repair may
	// re-create a copy.
	known, ok := l.leases.drop(id)
	l.holds.released(id)
	if !ok {
		known.copies = allLanes
	}
	g := l.engine.Pool.Group(id.db)
	if b == nil && l.waits.count.Load() > 0 { // the release and the next waiter's ballot leave together
		b = &Batch{}
		defer b.Send()
	}
	l.dropNote(b, id)
	l.engine.Submit(b, g, l.traced(t, &release{
		locker: l, group: g, id: id, key: l.engine.MasterKey(id.key), copies: known.copies,
		valid: ok && known.until > now, fence: known.fence, event: event, start: now, scope: only, done: done,
	}))
	l.waits.onRelease(b, dbKey{id.db, id.key})
}

// Props: "deleted" needs no seal, "not held" counts only under a good one.
func (r *release) Props() pool.Props {
	plan := pool.Props{Key: r.key, SharesKey: true, SealZero: true}
	if r.scope == nil {
		plan.Bulk = r.locker.engine.Scripts.Releases
	}
	return plan
}

// Word is the argument of the script that handles all releases of a flush.
func (r *release) BulkArg() string { return string(r.id.token) }

// Propose does nothing: a release has no fence.
func (r *release) Propose(int64) {}

// Command deletes whatever the token holds, usually without a guard: the command is sent
// once and nothing overtakes it.
func (r *release) Command(m *pool.SendContext, c *pool.Command) bool {
	if r.scope != nil {
		pending := r.pendingRelease(m.Lane)
		c.Set(pending.CommandArgs(m)...)
		return true
	}
	c.Set("EVALSHA", r.locker.engine.Scripts.Release, "1", r.key, string(r.id.token), "", "")
	return true
}

// Answer counts one master.
func (r *release) Answer(answer pool.Answer) {
	if answer.Reply.Err != nil && r.copies&(1<<answer.Lane) != 0 && len(r.id.token) >= shortToken {
		r.retryOn(answer.Lane)
	}
	r.mu.Lock()
	if r.over { // read without the lock
		r.mu.Unlock()
		return
	}
	switch {
	case answer.Reply.Err != nil:
		r.lacksLocked(&answer)
	case answer.Reply.Kind == pool.ReplyInt && answer.Reply.Int == 1:
		r.deleted++
		r.missing.MarkCounted(answer.Lane)
	case answer.Seal.Good && !answer.Seal.Quarantined,
		answer.Seal.Good && pool.Broken(pool.RuleQuarantineAbsence),
		pool.Broken(pool.RuleRepeatAbsence):
		r.absent++
		r.missing.MarkCounted(answer.Lane)
	default:
		r.lacksLocked(&answer)
	}
	released, err, decided := r.decideLocked()
	r.over = decided
	if released {
		// The event is emitted with the lock held: the next holder of the key needs
		// answers that come after this one, so its grant cannot be reported first.
		r.locker.events.emit(r.event, r.id, r.fence, 0)
	}
	r.mu.Unlock()
	if !decided {
		return
	}
	if released {
		r.locker.engine.Counts.Released.Add(1)
	}
	r.locker.engine.Leave()
	r.done(released, err)
}

func (r *release) lacksLocked(answer *pool.Answer) {
	r.uncounted++
	r.missing.MarkMissing(answer.Lane, r.locker.engine.Pool.Absence(answer))
}

func (r *release) decideLocked() (released bool, err error, decided bool) {
	n, quorum := r.locker.engine.Pool.N(), r.locker.engine.Pool.Quorum()
	switch {
	case r.deleted >= quorum:
		return true, nil, true
	case r.absent > n-quorum:
		return false, nil, true
	case r.deleted+r.absent+r.uncounted < n:
		return false, nil, false
	case r.valid && r.deleted > 0:
		// The lease was valid, so a quorum held it. The masters without an answer receive
		// the release again until they have deleted their copy.
		return true, nil, true
	}
	return false, r.locker.engine.NoQuorum(&r.missing,
		"whether the token held the lock is unknown; the release is repeated until every master has let go"), true
}

// retryOn repeats the release on a master that did not answer. The guard spares copies
// that end later than any copy that can exist now: if the token is used again, they
// belong to that later lease.
func (r *release) retryOn(lane int) {
	r.group.RetryRelease(lane, r.pendingRelease(lane))
}

func (r *release) pendingRelease(lane int) pool.PendingRelease {
	l := r.locker
	if r.scope == nil {
		return l.pendingRelease(r.key, r.id.token, r.start)
	}
	return l.pendingReleaseUpTo(r.key, r.id.token, r.start, r.scope.upTo, r.scope.wrote[lane]+2*quorum.ExpiryGrain)
}

// pendingRelease releases whatever the token may have held when the release was
// requested.
func (l *Locker) pendingRelease(key string, token Token, requested time.Duration) pool.PendingRelease {
	return l.pendingReleaseUpTo(key, token, requested, l.engine.MaxTTL+l.engine.MasterTimeout+time.Second, 0)
}

// pendingReleaseUpTo spares copies that end later than upTo after the release was
// requested, and later than wrote, ms of the master's clock.
func (l *Locker) pendingReleaseUpTo(key string, token Token, requested, upTo time.Duration, wrote int64) pool.PendingRelease {
	return pool.PendingRelease{
		ArgsAt: func(then int64) []string {
			return l.releaseWords(key, token, 0, max(then/1000+upTo.Milliseconds(), wrote))
		},
		Since: requested,
		Until: requested + l.engine.MaxTTL + 4*l.engine.MasterTimeout,
	}
}

func (l *Locker) pendingReleaseWithin(key string, token Token, lo, hi int64, until time.Duration) pool.PendingRelease {
	return pool.PendingRelease{Args: l.releaseWords(key, token, lo, hi), Until: until}
}

// releaseWords is the command that deletes a copy if it ends within [lo, hi].
func (l *Locker) releaseWords(key string, token Token, lo, hi int64) []string {
	return []string{"EVALSHA", l.engine.Scripts.Release, "1", key, string(token), strconv.FormatInt(lo, 10), strconv.FormatInt(hi, 10)}
}
