package admin

// lockcache.go caches which locks are held, for all viewers of a database. A walk over
// the masters and reads of single keys fill it. It reads no clock.

import (
	"slices"
	"strings"
	"sync"
	"time"

	"redlockd/redlock"
)

const (
	// maxEntries bounds the cache, at some 600 bytes an entry. Locks beyond it are found
	// by their whole name only; extraEntries is space for those.
	maxEntries   = 100_000
	extraEntries = 1_000
	// maxShownHolders are shown in a row; DINFO shows all of them.
	maxShownHolders = 3
)

// cachedLock is the last known state of a lock.
type cachedLock struct {
	key       redlock.Key
	mode      redlock.Mode
	undecided bool // it may be held: too few masters answered
	limit     int
	count     int // of holders
	holders   []redlock.Holder
	until     time.Time // the last lease ends
	fence     redlock.Fence
	queued    int       // over all daemons, as far as known
	waiters   int       // here
	since     time.Time // when it was first read
}

// lockCache is safe for concurrent use. Entries are replaced, never changed.
type lockCache struct {
	mu       sync.Mutex
	entries  map[redlock.Key]*cachedLock
	complete bool // one walk has been completed
	visited  visitedKeys
}

// visitedKeys are the keys that a walk has visited so far. It has a mutex of its own
// because a lane checks every key that it finds: the lane must never wait for a scan of
// the whole cache.
type visitedKeys struct {
	mu   sync.Mutex
	keys map[redlock.Key]struct{}
	full bool // a key exceeded maxEntries
}

func newLockCache() *lockCache {
	return &lockCache{entries: map[redlock.Key]*cachedLock{}, visited: visitedKeys{keys: map[redlock.Key]struct{}{}}}
}

// needsVisit reports whether a walk has not visited a key yet.
func (m *visitedKeys) needsVisit(key redlock.Key) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, known := m.keys[key]
	if !known && len(m.keys) >= maxEntries {
		m.full = true
		return false
	}
	return !known
}

func (m *visitedKeys) add(key redlock.Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.keys[key] = struct{}{}
}

// reset ends a walk: it returns the visited keys and starts anew.
func (m *visitedKeys) reset() (keys map[redlock.Key]struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	keys = m.keys
	m.keys, m.full = map[redlock.Key]struct{}{}, m.full && len(keys) >= maxEntries
	return keys
}

func (m *visitedKeys) isFull() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.full
}

// put stores the state of a key on the masters. Only a read of a single key returns
// fences, notes and queues; a walk leaves their known values.
func (b *lockCache) put(key redlock.Key, v *redlock.LockView, now time.Time, single bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if v.State != redlock.LockHeld && v.State != redlock.LockUndecided {
		delete(b.entries, key)
		return
	}
	before := b.entries[key]
	if len(v.Holders) == 0 && v.Count == 0 { // no master's answer decides whether it is still held: the known state stays until it expires
		if before != nil {
			undecided := *before
			undecided.undecided = true
			b.entries[key] = &undecided
		}
		return
	}
	limit := maxEntries
	if single {
		limit += extraEntries
	}
	if before == nil && len(b.entries) >= limit {
		return
	}
	e := &cachedLock{
		key: redlock.Key(strings.Clone(string(key))), mode: v.Mode, undecided: v.State == redlock.LockUndecided, limit: v.Limit,
		count: v.Count, holders: slices.Clone(v.Holders[:min(len(v.Holders), maxShownHolders)]),
		until: now.Add(v.Left), queued: v.Queued, waiters: v.Waiters, since: now,
	}
	for i := range v.Holders {
		e.fence = max(e.fence, v.Holders[i].Fence)
	}
	if before != nil && sameHolder(before, e) {
		e.since = before.since
		if !single {
			e.holders, e.fence, e.queued, e.waiters = before.holders, before.fence, before.queued, before.waiters
		}
	}
	b.entries[e.key] = e
	b.visited.add(e.key)
}

func sameHolder(a, b *cachedLock) bool {
	return len(a.holders) > 0 && len(b.holders) > 0 && a.count == b.count && a.holders[0].Token == b.holders[0].Token
}

// heldSince returns when the lock was granted: a fence is the masters' time in µs, or
// a little more. For a lock with an unknown fence it returns when the lock was first read,
// and sure is false.
func (e *cachedLock) heldSince() (t time.Time, sure bool) {
	if e.fence > 0 {
		return time.UnixMicro(int64(e.fence)), true
	}
	return e.since, false
}

// get returns the entry of a key, nil if there is none.
func (b *lockCache) get(key redlock.Key) *cachedLock {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.entries[key]
}

// endPass removes the keys that the ended walk has not visited.
func (b *lockCache) endPass() {
	keys := b.visited.reset()
	b.mu.Lock()
	defer b.mu.Unlock()
	for key := range b.entries {
		if _, here := keys[key]; !here {
			delete(b.entries, key)
		}
	}
	b.complete = true
}

// sweep removes expired locks.
func (b *lockCache) sweep(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for key, e := range b.entries {
		if e.until.Before(now) {
			delete(b.entries, key)
		}
	}
}

// list returns the present content.
func (b *lockCache) list() lockSet {
	l := lockSet{full: b.visited.isFull()}
	b.mu.Lock()
	defer b.mu.Unlock()
	l.complete = b.complete
	l.entries = make([]*cachedLock, 0, len(b.entries))
	for _, e := range b.entries {
		l.entries = append(l.entries, e)
	}
	return l
}
