// What does this daemon know about the leases it granted? Nothing that safety
// rests on: the record only sharpens answers (was it still valid when it was
// released?) and keeps a lapsed lease from being revived by a stray copy.
package redlock

import (
	"sync"
	"time"
)

// everywhere are all masters, for leases whose copies are not known.
const everywhere = ^uint16(0)

// lockID names one lease.
type lockID struct {
	db    int
	key   Key
	token Token
}

// lease is what was promised last.
type lease struct {
	until time.Duration // end of the validity that was told to the holder
	gone  time.Duration // no copy that this daemon made lasts longer
	// copies are the masters that may hold one, as bits: only they have to be
	// told of the release if they do not answer.
	copies uint16
	mode   Mode
	fence  Fence // of the grant; 0 = another daemon's, not known
	// life numbers what the record is about. An extension that is decided after
	// a release of the same token must not bring the record back to life.
	life uint64
}

// leases forget by generation: what was noted before the last two periods has
// expired, because no lease is longer than one. Forgetting costs nothing.
type leases struct {
	period time.Duration

	mu      sync.Mutex
	young   map[lockID]lease
	old     map[lockID]lease
	rotated time.Duration
	lives   uint64 // numbers given
}

func newLeases(maxTTL time.Duration) *leases {
	return &leases{period: maxTTL + 5*time.Second, young: map[lockID]lease{}, old: map[lockID]lease{}}
}

// note records a grant; a later end wins.
func (l *leases) note(id lockID, n lease, now time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.noteLocked(id, n, now)
}

func (l *leases) noteLocked(id lockID, n lease, now time.Duration) {
	if now-l.rotated > l.period {
		l.old, l.young, l.rotated = l.young, map[lockID]lease{}, now
	}
	if before, ok := l.findLocked(id); ok {
		n.until, n.gone, n.copies = max(n.until, before.until), max(n.gone, before.gone), n.copies|before.copies
		n.fence = max(n.fence, before.fence)
		n.life = before.life
		delete(l.old, id)
	} else {
		l.lives++
		n.life = l.lives
	}
	l.young[id] = n
}

// consider tells what is known of a lease that is about to be extended. Of one
// that another daemon granted nothing is known: it gets an empty record, so that
// a release in the meantime has something to drop.
func (l *leases) consider(id lockID, now time.Duration) lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known, ok := l.findLocked(id); ok {
		return known
	}
	l.noteLocked(id, lease{copies: everywhere}, now)
	return l.young[id]
}

// prolong records an extension of what was considered, unless it has been
// released meanwhile.
func (l *leases) prolong(id lockID, n lease, life uint64, now time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known, ok := l.findLocked(id); ok && known.life == life {
		l.noteLocked(id, n, now)
	}
}

// shorten records that a lease ends then, if it was to last longer: a client whose
// script sets an end is promised no more.
func (l *leases) shorten(id lockID, until time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, generation := range []map[lockID]lease{l.young, l.old} {
		if known, ok := generation[id]; ok {
			known.until = min(known.until, until)
			generation[id] = known
		}
	}
}

// unconsider drops a record that has stayed empty.
func (l *leases) unconsider(id lockID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known, ok := l.findLocked(id); ok && known.until == 0 {
		delete(l.young, id)
		delete(l.old, id)
	}
}

// disown forgets a lease that was given back, unless it has been granted again since.
func (l *leases) disown(id lockID, fence Fence) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known, ok := l.findLocked(id); ok && known.fence == fence {
		delete(l.young, id)
		delete(l.old, id)
	}
}

// drop forgets a lease and tells what was known.
func (l *leases) drop(id lockID) (lease, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	was, ok := l.findLocked(id)
	delete(l.young, id)
	delete(l.old, id)
	return was, ok
}

func (l *leases) find(id lockID) (lease, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.findLocked(id)
}

func (l *leases) findLocked(id lockID) (lease, bool) {
	if known, ok := l.young[id]; ok {
		return known, true
	}
	known, ok := l.old[id]
	return known, ok
}
