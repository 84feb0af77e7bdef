// leaseRecords stores what this daemon knows about the leases it granted. Safety does not rest
// on it: a record only makes answers more precise (was the lease still valid when it was
// released?) and keeps a stray copy from reviving a lapsed lease.

package redlock

import (
	"sync"
	"time"
)

// allLanes are all masters, for leases whose copies are not known.
const everywhere = ^uint16(0)

// lockID names one lease.
type lockID struct {
	db    int
	key   Key
	token Token
}

// leaseRecord is what was promised last.
type lease struct {
	until time.Duration // end of the validity that the holder received
	gone  time.Duration // no copy that this daemon made lasts longer
	// copies are the masters that may hold one, as bits: only they must receive the release
	// later if they do not answer.
	copies uint16
	mode   Mode
	fence  Fence // of the grant; 0 = another daemon's, not known
	// number identifies the record. An extension that is decided after a release of the same
	// token must not bring the record back.
	life uint64
}

// leaseRecords forget by generation: what was noted before the last two periods has expired,
// because no lease is longer than one. Forgetting costs nothing.
type leases struct {
	period time.Duration

	mu      sync.Mutex
	young   map[lockID]lease
	old     map[lockID]lease
	rotated time.Duration
	lives   uint64 // the last number given
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

// findOrAdd returns the record of a lease that is about to be extended. Nothing is known of a
// lease that another daemon granted: it gets an empty record, so that a release in the meantime
// has something to drop.
func (l *leases) consider(id lockID, now time.Duration) lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known, ok := l.findLocked(id); ok {
		return known
	}
	l.noteLocked(id, lease{copies: everywhere}, now)
	return l.young[id]
}

// prolong records an extension of a lease that findOrAdd returned, unless the lease has been
// released meanwhile.
func (l *leases) prolong(id lockID, n lease, number uint64, now time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known, ok := l.findLocked(id); ok && known.life == number {
		l.noteLocked(id, n, now)
	}
}

// shorten records that a lease ends at until, if it was to last longer: a client whose script
// sets an end is promised no more.
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

// dropIfEmpty drops a record that has stayed empty.
func (l *leases) unconsider(id lockID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known, ok := l.findLocked(id); ok && known.until == 0 {
		delete(l.young, id)
		delete(l.old, id)
	}
}

// dropGrant forgets a lease that was given back, unless it has been granted again since.
func (l *leases) disown(id lockID, fence Fence) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known, ok := l.findLocked(id); ok && known.fence == fence {
		delete(l.young, id)
		delete(l.old, id)
	}
}

// drop forgets a lease and returns its record.
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
