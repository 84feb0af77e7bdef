// This file remembers which locks a walk has reported, so that it lists each once although
// they have copies on several of the masters that it walks.
//
// A walk is followed by its connection and its cursor. Elsewhere it goes on without the memory:
// through another connection or daemon, or after walks that came later needed the space. Then a
// lock may be listed again. None is missed: only what was listed is left out.

package inspect

import (
	"hash/maphash"
	"sync"

	"redlockd/redlock/engine"
)

const (
	// maxReported bounds what is remembered of all walks together, counted in locks: some 20
	// bytes each.
	maxReported = 1 << 18
	// walkCost is a walk itself, counted in locks: one that has reported nothing takes space, too.
	walkCost = 16
)

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
	total int                   // what they cost
}

// take returns what the walk has reported so far; nil if that is not known.
func (r *reported) take(client int64, db int, cursor uint64) reportedKeys {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.walks[client]
	r.dropLocked(client)
	switch {
	case client == 0:
		return nil
	case cursor == 0:
		return reportedKeys{}
	case w.db != db || w.cursor != cursor:
		return nil
	}
	return w.keys
}

// keep remembers what the walk has reported until the step with that cursor; 0 = it has ended. If
// there is no space, other walks are forgotten: many of them have been given up by their clients.
func (r *reported) keep(client int64, db int, cursor uint64, keys reportedKeys) {
	cost := walkCost + len(keys)
	if cursor == 0 || keys == nil || cost > maxReported {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dropLocked(client)
	for other := range r.walks {
		if r.total+cost <= maxReported {
			break
		}
		r.dropLocked(other)
	}
	if r.walks == nil {
		r.walks = map[int64]interrupted{}
	}
	r.total += cost
	r.walks[client] = interrupted{db, cursor, keys}
}

// dropLocked forgets a client's walk, if there is one.
func (r *reported) dropLocked(client int64) {
	if w, ok := r.walks[client]; ok {
		delete(r.walks, client)
		r.total -= walkCost + len(w.keys)
	}
}

// isNew reports whether the walk has not reported the key before, and notes it.
func (r *reported) isNew(key engine.Key, keys reportedKeys) bool {
	if keys == nil {
		return true
	}
	hash := maphash.String(r.seed, string(key))
	_, before := keys[hash]
	keys[hash] = struct{}{}
	return !before
}
