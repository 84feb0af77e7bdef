package maxhold

// held.go finds the deadline of what a client holds before it requests it once more. A deadline on the
// masters may be left behind by a lock that was released through another daemon, or that has run out. It
// stands for a request only if its token holds the key still.

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"redlockd/redlock/engine"
	"redlockd/redlock/inspect"
	"redlockd/redlock/lease"
)

// deadlineOf calls done once with the deadline for a request, 0 if none stands, and with its batch, or without
// if that has been sent meanwhile.
func (m *MaxHold) deadlineOf(b *engine.Batch, r *lease.LockRequest, longest time.Duration, done func(b *engine.Batch, deadline int64, err error)) {
	held, at := r.Token, int64(0)
	if swap := lease.SwapOf(r.Mode); swap != nil && swap.Retakes != nil {
		held = swap.Retakes.Held
	}
	if at = m.inToken(held, r.DB, longest); at == 0 {
		at = m.inToken(lease.BeforePart(r.Mode), r.DB, longest)
	}
	switch {
	case at > 0:
		done(b, at, nil)
	case lease.LevelOwner(r.Mode) != "":
		m.ofLevels(r, longest, done)
	case held == "", isNew(r): // it holds nothing yet
		done(b, 0, nil)
	default:
		keys := append([]engine.Key{r.Key}, r.More...)
		m.read(b, r.DB, keys, held, func(deadlines []int64, err error) {
			if err != nil {
				done(nil, 0, err)
				return
			}
			m.stillHeld(r.DB, keys, held, deadlines, 0, done)
		})
	}
}

// stillHeld finds the earliest deadline of the keys that the token holds.
func (m *MaxHold) stillHeld(db int, keys []engine.Key, held engine.Token, deadlines []int64, at int64, done func(b *engine.Batch, deadline int64, err error)) {
	i := slices.IndexFunc(deadlines, func(one int64) bool { return one > 0 })
	if i < 0 {
		done(nil, at, nil)
		return
	}
	m.inspector.ReadLock(db, keys[i], func(v inspect.LockView, err error) {
		if err != nil {
			done(nil, 0, err)
			return
		}
		if slices.ContainsFunc(v.Holders, func(h inspect.Holder) bool { return h.Token == held }) {
			at = earliest([]int64{at, deadlines[i]})
		}
		m.stillHeld(db, keys[i+1:], held, deadlines[i+1:], at, done)
	})
}

// ofLevels finds the deadline of the levels that an owner has: it is in the token of each.
func (m *MaxHold) ofLevels(r *lease.LockRequest, longest time.Duration, done func(b *engine.Batch, deadline int64, err error)) {
	m.inspector.ReadLock(r.DB, r.Key, func(v inspect.LockView, err error) {
		if err != nil {
			done(nil, 0, err)
			return
		}
		levels, _, _ := v.Levels(lease.LevelOwner(r.Mode))
		var all []int64
		for i := range levels {
			all = append(all, m.inToken(levels[i].Token, r.DB, longest))
		}
		m.met(latest(all))
		done(nil, earliest(all), nil)
	})
}

// begun are the leases of clients' own tokens for which requests are about to be sent. A release of them comes
// behind: otherwise it would find nothing yet, and leave the lock to a client that has let go.
type begun struct {
	count atomic.Int64
	mu    sync.Mutex
	byID  map[engine.LeaseID]*begunLease
}

type begunLease struct {
	requests int
	then     []func()
}

func idsOf(r *lease.LockRequest) (ids []engine.LeaseID) {
	if r.Token == "" {
		return nil
	}
	swap := lease.SwapOf(r.Mode)
	for i, key := range append([]engine.Key{r.Key}, r.More...) {
		id := engine.LeaseID{DB: r.DB, Key: key, Token: r.Token}
		if swap != nil && i < len(swap.Tokens) {
			id.Token = swap.Tokens[i]
		}
		ids = append(ids, id)
	}
	return ids
}

func (b *begun) add(ids []engine.LeaseID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, id := range ids {
		if b.byID[id] == nil {
			if b.byID == nil {
				b.byID = map[engine.LeaseID]*begunLease{}
			}
			b.byID[id] = &begunLease{}
			b.count.Add(1)
		}
		b.byID[id].requests++
	}
}

// remove is called once the requests are on their way.
func (b *begun) remove(ids []engine.LeaseID) {
	var then []func()
	b.mu.Lock()
	for _, id := range ids {
		one := b.byID[id]
		if one.requests--; one.requests == 0 {
			then = append(then, one.then...)
			delete(b.byID, id)
			b.count.Add(-1)
		}
	}
	b.mu.Unlock()
	for _, release := range then {
		release()
	}
}

// postpones reports whether a release of a lease is called by remove.
func (b *begun) postpones(id engine.LeaseID, release func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	one := b.byID[id]
	if one != nil {
		one.then = append(one.then, release)
	}
	return one != nil
}
