// Package maxhold bounds how long one holder keeps a lock: over all extensions, further levels, and requests
// with the same token or with a value that takes the place of another.
//
// A hold begins with the first grant and has a deadline from then on, if its request has a longest time. It
// is requested and extended for what is left at most, and then no more, through any daemon. The deadline is
// in the token if that is generated (token.go), and else on the masters (deadlines.go). Locks without a
// longest time have neither, and cost nothing. Package renew ends the renewals of HOLD by itself.
//
// Reading order: maxhold.go, token.go, deadlines.go, held.go.
package maxhold

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"redlockd/redlock/engine"
	"redlockd/redlock/events"
	"redlockd/redlock/inspect"
	"redlockd/redlock/lease"
)

const (
	// minLeft is the shortest time that is requested.
	minLeft = 10 * time.Millisecond
	// maxDeadline bounds deadlines: those beyond it are no deadlines.
	maxDeadline = 366 * 24 * time.Hour
)

// errOver is for a generated token, which is of one hold alone.
var errOver = errors.New("the longest time of this token is over: request the lock without TOKEN")

// MaxHold passes requests to the leases of a daemon within their longest time.
type MaxHold struct {
	engine    *engine.Engine
	leases    *lease.Leases
	inspector *inspect.Inspector
	events    *events.Events

	latest  atomic.Int64 // the latest deadline that this daemon has met, ms of the masters' clock
	begun   begun
	looked  looked
	overdue overdue
}

// New returns the bounds of a daemon's leases.
func New(e *engine.Engine, l *lease.Leases, i *inspect.Inspector, v *events.Events) *MaxHold {
	return &MaxHold{engine: e, leases: l, inspector: i, events: v}
}

// now is the time by the masters' clocks, in ms.
func (m *MaxHold) now(db int) int64 { return m.engine.Pool.Group(db).Time() / 1000 }

// bounds reports whether a deadline may stand for the request. This daemon looks for one on the masters if the
// request has a longest time itself, or another one has, whose deadline is to come.
func (m *MaxHold) bounds(r *lease.LockRequest) bool {
	chosen := r.Token != "" && !isNew(r) || lease.LevelOwner(r.Mode) != ""
	return lease.LimitOfHold(r.Mode).Longest > 0 || hasDeadline(r.Token) || hasDeadline(lease.BeforePart(r.Mode)) || chosen && m.inUse(r.DB)
}

// isNew reports whether a request is for a lock that its client does not hold, though it chose the value.
func isNew(r *lease.LockRequest) bool {
	swap := lease.SwapOf(r.Mode)
	return lease.HasClientValues(r.Mode) && (swap == nil || swap.Retakes == nil)
}

// inUse reports whether a deadline that this daemon has met is to come.
func (m *MaxHold) inUse(db int) bool {
	latest := m.latest.Load()
	return latest > 0 && latest > m.now(db)
}

// met notes a deadline.
func (m *MaxHold) met(deadline int64) {
	for {
		latest := m.latest.Load()
		if deadline <= latest || m.latest.CompareAndSwap(latest, deadline) {
			return
		}
	}
}

// Lock requests a lock for its longest time at most, see lease.Leases.
func (m *MaxHold) Lock(b *engine.Batch, r lease.LockRequest, done lease.LockDone) {
	if !m.bounds(&r) {
		m.leases.Lock(b, r, done)
		return
	}
	m.take(b, r, done, m.leases.Lock)
}

// Wait is Lock with a wait.
func (m *MaxHold) Wait(b *engine.Batch, r lease.LockRequest, done lease.LockDone, wait func(*engine.Batch, lease.LockRequest, lease.LockDone) (leave func())) (leave func()) {
	if !m.bounds(&r) {
		return wait(b, r, done)
	}
	var mu sync.Mutex
	left, end := false, func() {}
	m.take(b, r, done, func(b *engine.Batch, r lease.LockRequest, done lease.LockDone) {
		leave := wait(b, r, done)
		mu.Lock()
		end = leave
		gone := left
		mu.Unlock()
		if gone {
			leave()
		}
	})
	return func() {
		mu.Lock()
		left = true
		leave := end
		mu.Unlock()
		leave()
	}
}

// Unlock releases a lock, see lease.Leases. It follows the requests with its token that came before.
func (m *MaxHold) Unlock(b *engine.Batch, r lease.UnlockRequest, done lease.UnlockDone) {
	if m.begun.count.Load() == 0 || !m.unlocksLater(r, done) {
		m.unlock(b, r, done)
	}
}

// unlocksLater, as what follows Extend and Write, is a function of its own because it makes closures: a request that
// has no longest time allocates nothing.
func (m *MaxHold) unlocksLater(r lease.UnlockRequest, done lease.UnlockDone) bool {
	return m.begun.postpones(engine.LeaseID{DB: r.DB, Key: r.Key, Token: r.Token}, func() { m.unlock(nil, r, done) })
}

func (m *MaxHold) unlock(b *engine.Batch, r lease.UnlockRequest, done lease.UnlockDone) {
	m.leases.Unlock(b, r, done)
	if r.Linger == 0 && m.inUse(r.DB) && !hasDeadline(r.Token) {
		m.forget(b, engine.LeaseID{DB: r.DB, Key: r.Key, Token: r.Token})
	}
}

// take requests the lock with lock, once the deadline of what the client holds already is known.
func (m *MaxHold) take(b *engine.Batch, r lease.LockRequest, done lease.LockDone, lock func(*engine.Batch, lease.LockRequest, lease.LockDone)) {
	ids, longest := idsOf(&r), lease.LimitOfHold(r.Mode).Longest
	m.begun.add(ids)
	m.deadlineOf(b, &r, longest, func(b *engine.Batch, deadline int64, err error) {
		defer m.begun.remove(ids)
		left := longest
		if deadline > 0 {
			left = time.Duration(deadline-m.now(r.DB)) * time.Millisecond
		}
		switch {
		case err != nil:
			done(lease.Grant{}, err)
			return
		case deadline == 0 && left == 0:
			lock(b, r, done)
			return
		case left <= 0 && hasDeadline(r.Token):
			done(lease.Grant{}, errOver)
			return
		case left < minLeft, deadline > 0 && r.TTL > left && lease.HasClientValues(r.Mode): // its client takes the ttl for granted
			m.isOver(engine.LeaseID{DB: r.DB, Key: r.Key, Token: r.Token})
			done(lease.Grant{}, engine.ErrHeld)
			return
		}
		r.TTL = min(r.TTL, left)
		limit := lease.HoldLimit{}
		if deadline > 0 {
			limit.EndsBy = m.engine.Clock.Now() + left
		}
		bounded := func(g lease.Grant, err error) {
			if g.EndsBy = limit.EndsBy; deadline == 0 {
				g.EndsBy = g.Began() + left
			}
			done(g, err)
		}
		ends := func() int64 {
			if deadline > 0 {
				return deadline
			}
			return m.now(r.DB) + left.Milliseconds()
		}
		if r.Token == "" {
			limit.Mark = func(fresh engine.Token) engine.Token {
				at := ends()
				m.met(at)
				return withDeadline(fresh, at)
			}
		}
		r.Mode = lease.Limited(r.Mode, limit)
		if r.Token == "" {
			lock(b, r, bounded)
			return
		}
		lock(b, r, func(g lease.Grant, err error) {
			if err != nil {
				done(g, err)
				return
			}
			at := ends()
			if deadline == 0 {
				at -= g.Elapsed().Milliseconds()
			}
			m.write(leasesOf(r.DB, &g), at, func(err error) {
				if err != nil {
					m.leases.Undelivered(g)
					g = lease.Grant{}
				}
				bounded(g, err)
			})
		})
	})
}

// Forget forgets the deadline of a lock that is held no more.
func (m *MaxHold) Forget(g *lease.Grant) {
	if g.EndsBy == 0 || !g.Chosen() {
		return
	}
	for _, id := range leasesOf(g.DB(), g) {
		m.forget(nil, id)
	}
}

func leasesOf(db int, g *lease.Grant) (all []engine.LeaseID) {
	for i, key := range g.Keys() {
		all = append(all, engine.LeaseID{DB: db, Key: key, Token: g.TokenOf(i)})
	}
	return all
}

// Extend extends a lock up to its deadline at most, see lease.Leases. What is over is ErrNotHeld.
func (m *MaxHold) Extend(b *engine.Batch, r lease.ExtendRequest, done lease.ExtendDone) {
	if at := m.inToken(r.Token, r.DB, r.Longest); at > 0 {
		m.extend(b, r, at, done)
		return
	}
	first := engine.LeaseID{DB: r.DB, Key: r.Key, Token: r.Token}
	if r.Longest == 0 && !m.inUse(r.DB) && (isGenerated(r.Token) || m.leases.Known(first).Granted > 0 || m.looked.has(first, m.engine.Clock.Now())) {
		m.leases.Extend(b, r, done)
		return
	}
	m.extendKept(b, r, first, done)
}

// extendKept extends a lock whose deadline the masters may keep.
func (m *MaxHold) extendKept(b *engine.Batch, r lease.ExtendRequest, first engine.LeaseID, done lease.ExtendDone) {
	keys := append([]engine.Key{r.Key}, r.More...)
	m.read(b, r.DB, keys, r.Token, func(deadlines []int64, err error) {
		at := earliest(deadlines)
		switch {
		case err != nil:
			done(lease.Grant{}, err)
			return
		case at == 0 && r.Longest == 0:
			m.looked.note(first, m.engine.Clock.Now()+r.TTL)
			m.leases.Extend(nil, r, done)
			return
		case at > 0:
			m.extend(nil, r, at, done)
			return
		}
		at = m.now(r.DB) + r.Longest.Milliseconds()
		var ids []engine.LeaseID
		for _, key := range keys {
			ids = append(ids, engine.LeaseID{DB: r.DB, Key: key, Token: r.Token})
		}
		m.write(ids, at, func(err error) {
			if err != nil {
				done(lease.Grant{}, err)
				return
			}
			m.extend(nil, r, at, done)
		})
	})
}

func (m *MaxHold) extend(b *engine.Batch, r lease.ExtendRequest, deadline int64, done lease.ExtendDone) {
	left := time.Duration(deadline-m.now(r.DB)) * time.Millisecond
	if r.Whole || r.Exact { // it may be repeated when the masters are too slow
		left -= 3 * m.engine.MasterTimeout
	}
	if left < minLeft || r.TTL > left && (r.Whole || r.Exact) {
		m.isOver(engine.LeaseID{DB: r.DB, Key: r.Key, Token: r.Token})
		done(lease.Grant{}, engine.ErrNotHeld)
		return
	}
	r.EndsBy = m.engine.Clock.Now() + left
	m.leases.Extend(b, r, done)
}

// Write changes an exclusive lock that is not to last beyond its deadline, see lease.Leases. A value that
// takes the place of one that the client names is the same hold.
func (m *MaxHold) Write(b *engine.Batch, r lease.WriteRequest, done lease.WriteDone) {
	if r.Effect == lease.WriteDeletes || r.Longest == 0 && !m.inUse(r.DB) {
		m.leases.Write(b, r, done)
	} else {
		m.writeKept(b, r, done)
	}
}

func (m *MaxHold) writeKept(b *engine.Batch, r lease.WriteRequest, done lease.WriteDone) {
	switch {
	case r.Effect == lease.WriteReplaces && r.Equal == "": // it is taken from its holder
		m.change(b, r, r.Value, m.now(r.DB)+r.Longest.Milliseconds(), done)
	case r.Equal != "":
		m.changeHeld(b, r, r.Equal, done)
	default:
		m.leases.View(b, r.DB, r.Key, func(v lease.View, err error) {
			switch {
			case err != nil:
				done(false, err)
			case v.Kind != "string":
				m.leases.Write(nil, r, done)
			default:
				m.changeHeld(nil, r, v.Value, done)
			}
		})
	}
}

// changeHeld changes the lock of a token.
func (m *MaxHold) changeHeld(b *engine.Batch, r lease.WriteRequest, held engine.Token, done lease.WriteDone) {
	next := held
	if r.Effect == lease.WriteReplaces {
		next = r.Value
	}
	if at := m.inToken(held, r.DB, r.Longest); at > 0 {
		m.change(b, r, next, at, done)
		return
	}
	m.read(b, r.DB, []engine.Key{r.Key}, held, func(deadlines []int64, err error) {
		switch at := earliest(deadlines); {
		case err != nil:
			done(false, err)
		case at > 0:
			m.change(nil, r, next, at, done)
		case r.Longest > 0:
			m.change(nil, r, next, m.now(r.DB)+r.Longest.Milliseconds(), done)
		default:
			m.leases.Write(nil, r, done)
		}
	})
}

// change writes what ends before the deadline; token holds the key then.
func (m *MaxHold) change(b *engine.Batch, r lease.WriteRequest, token engine.Token, deadline int64, done lease.WriteDone) {
	id := engine.LeaseID{DB: r.DB, Key: r.Key, Token: token}
	if r.TTL > time.Duration(deadline-m.now(r.DB))*time.Millisecond {
		m.isOver(id)
		done(false, nil)
		return
	}
	m.leases.Write(b, r, func(did bool, err error) {
		if err != nil || !did {
			done(did, err)
			return
		}
		m.write([]engine.LeaseID{id}, deadline, func(err error) { done(err == nil, err) })
	})
}

// isOver reports, once, that a lock that this daemon knows is not extended any more.
func (m *MaxHold) isOver(id engine.LeaseID) {
	if known := m.leases.Known(id); known.Until > 0 && m.overdue.first(id) {
		m.engine.Counts.Overdue.Add(1)
		m.events.Emit(events.Overdue, id, known.Fence, 0)
	}
}
