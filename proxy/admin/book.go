package admin

// book.go answers: which locks are held? The book is what all viewers share: it
// is filled by a walk over the masters and by looks at single keys. It knows no clock.

import (
	"slices"
	"strings"
	"sync"
	"time"

	"redlockd/redlock"
)

const (
	// mostEntries bounds the book, at some 600 bytes an entry. Of more locks than
	// these the rest is found by its whole name; moreEntries is room for that.
	mostEntries = 100_000
	moreEntries = 1_000
	// mostShownHolders are written into a row; DINFO tells all of them.
	mostShownHolders = 3
)

// entry is a lock as it was seen last.
type entry struct {
	key     redlock.Key
	mode    redlock.Mode
	unsure  bool // somebody may hold it: too few masters could tell
	limit   int
	count   int // of holders
	holders []redlock.Holder
	until   time.Time // the last lease ends
	fence   redlock.Fence
	queued  int       // over all daemons, as far as it is known
	waiters int       // here
	since   time.Time // it was first seen
}

// book is safe for concurrent use. Entries are replaced, never changed.
type book struct {
	mu       sync.Mutex
	entries  map[redlock.Key]*entry
	complete bool // one walk has come to its end
	met      met
}

// met are the keys that a walk has met so far. It has a lock of its own because a
// lane asks for every key that it finds: it must never wait for a look at all of
// them.
type met struct {
	mu   sync.Mutex
	keys map[redlock.Key]struct{}
	full bool // a key found no room
}

func newBook() *book {
	return &book{entries: map[redlock.Key]*entry{}, met: met{keys: map[redlock.Key]struct{}{}}}
}

// wants tells a walk which keys it has not looked at yet.
func (m *met) wants(key redlock.Key) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, known := m.keys[key]
	if !known && len(m.keys) >= mostEntries {
		m.full = true
		return false
	}
	return !known
}

func (m *met) note(key redlock.Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.keys[key] = struct{}{}
}

// end is for the end of a walk: what it has met, and a new beginning.
func (m *met) end() (keys map[redlock.Key]struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	keys = m.keys
	m.keys, m.full = map[redlock.Key]struct{}{}, m.full && len(keys) >= mostEntries
	return keys
}

func (m *met) isFull() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.full
}

// put writes down what the masters show of a key. Only a look at a single key
// knows fences, notes and queues; a walk leaves what is known of them.
func (b *book) put(key redlock.Key, v *redlock.LockView, now time.Time, single bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if v.State != redlock.LockHeld && v.State != redlock.LockUndecided {
		delete(b.entries, key)
		return
	}
	before := b.entries[key]
	if len(v.Holders) == 0 && v.Count == 0 { // nobody can tell whether it is still held: what is known stands until its time is over
		if before != nil {
			doubted := *before
			doubted.unsure = true
			b.entries[key] = &doubted
		}
		return
	}
	room := mostEntries
	if single {
		room += moreEntries
	}
	if before == nil && len(b.entries) >= room {
		return
	}
	e := &entry{
		key: redlock.Key(strings.Clone(string(key))), mode: v.Mode, unsure: v.State == redlock.LockUndecided, limit: v.Limit,
		count: v.Count, holders: slices.Clone(v.Holders[:min(len(v.Holders), mostShownHolders)]),
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
	b.met.note(e.key)
}

func sameHolder(a, b *entry) bool {
	return len(a.holders) > 0 && len(b.holders) > 0 && a.count == b.count && a.holders[0].Token == b.holders[0].Token
}

// heldSince is when the lock was granted: a fence is the masters' time in µs, or
// a little more. Of a lock whose fence nobody here knows it is since when it has
// been seen, and then sure is false.
func (e *entry) heldSince() (t time.Time, sure bool) {
	if e.fence > 0 {
		return time.UnixMicro(int64(e.fence)), true
	}
	return e.since, false
}

// of is what is written of one key, nil if nothing is.
func (b *book) of(key redlock.Key) *entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.entries[key]
}

// endPass takes out what the walk that ends has not met.
func (b *book) endPass() {
	keys := b.met.end()
	b.mu.Lock()
	defer b.mu.Unlock()
	for key := range b.entries {
		if _, here := keys[key]; !here {
			delete(b.entries, key)
		}
	}
	b.complete = true
}

// sweep takes out what has ended.
func (b *book) sweep(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for key, e := range b.entries {
		if e.until.Before(now) {
			delete(b.entries, key)
		}
	}
}

// list is the book as it is now.
func (b *book) list() list {
	l := list{full: b.met.isFull()}
	b.mu.Lock()
	defer b.mu.Unlock()
	l.complete = b.complete
	l.entries = make([]*entry, 0, len(b.entries))
	for _, e := range b.entries {
		l.entries = append(l.entries, e)
	}
	return l
}
