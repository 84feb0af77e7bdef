// This file remembers which locks a walk has reported, so that it lists each once although
// they have copies on several of the masters that it walks.
//
// A walk is followed by its connection and its cursor. Elsewhere it goes on without the memory:
// through another connection or daemon, or after maxReported was reached. Then a lock may be
// listed again. None is missed: only what was listed is left out.

package inspect

import (
	"hash/maphash"
	"slices"
	"sync"
)

// maxReported bounds the locks that are remembered, of all walks together: some 20 bytes each.
const maxReported = 1 << 18

// reportedKeys are hashes of keys: 64 bits, with a seed that no client knows.
type reportedKeys map[uint64]struct{}

// interrupted is a walk between two of its steps.
type interrupted struct {
	db     int
	cursor uint64
	keys   reportedKeys
}

// reported has what walks have reported.
type reported struct {
	seed maphash.Seed

	mu    sync.Mutex
	walks map[int64]interrupted // by client, which has one at a time
	total int                   // keys
}

// take returns what the walk has reported so far; nil if that is not known.
func (r *reported) take(l *Listing) reportedKeys {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.walks[l.Client]
	delete(r.walks, l.Client)
	r.total -= len(w.keys)
	switch {
	case l.Client == 0:
		return nil
	case l.Cursor == 0:
		return reportedKeys{}
	case w.db != l.DB || w.cursor != l.Cursor:
		return nil
	}
	return w.keys
}

// keep remembers what the walk has reported until the step with that cursor; 0 = it has ended.
func (r *reported) keep(l *Listing, cursor uint64, keys reportedKeys) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if cursor == 0 || keys == nil || r.total+len(keys) > maxReported {
		return
	}
	if r.walks == nil {
		r.walks = map[int64]interrupted{}
	}
	r.total += len(keys) - len(r.walks[l.Client].keys)
	r.walks[l.Client] = interrupted{l.DB, cursor, keys}
}

// newOf returns the locks that the walk has not reported before.
func (r *reported) newOf(locks []ListedLock, keys reportedKeys) []ListedLock {
	if keys == nil {
		return locks
	}
	return slices.DeleteFunc(locks, func(one ListedLock) bool {
		hash := maphash.String(r.seed, string(one.Key))
		_, before := keys[hash]
		keys[hash] = struct{}{}
		return before
	})
}
