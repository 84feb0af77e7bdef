// LastAcquired remembers which lock a connection acquired last on each key, for
// DUNLOCK without a token.

package commands

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"redlockd/redlock"
)

// A connection remembers at most this much. Dropping an entry costs no safety:
// the lock stays as it is, and DUNLOCK with its token releases it.
const (
	heldEntries = 1024
	heldBytes   = 128 << 10 // of keys and tokens; a key and a token may have 512 each
)

// LastAcquired remembers for each key the token with which a connection acquired
// it last. The zero value is ready and costs nothing until the first lock. Safe
// for concurrent use.
type Held struct {
	mu    sync.Mutex
	locks map[heldKey]heldLock
	bytes int
	count uint64 // acquisitions so far, numbers them
	// sharedByPool: locks of other connections were released or extended over this
	// one, so a lock's holder need not use the connection that acquired it.
	pooled bool
}

var _ redlock.Owner = (*Held)(nil)

type heldKey struct {
	db  int
	key redlock.Key
}

type heldLock struct {
	token  redlock.Token
	until  time.Time // when its validity is used up
	number uint64    // the larger, the later acquired
}

// Remember notes an acquired lock in place of the former one of the key.
func (h *Held) Remember(db int, key redlock.Key, token redlock.Token, validity time.Duration) {
	// One private copy of both: the originals point into the buffer of a whole
	// command, which an entry would keep alive.
	both := string(key) + string(token)
	at := heldKey{db, redlock.Key(both[:len(key)])}
	lock := heldLock{token: redlock.Token(both[len(key):]), until: time.Now().Add(validity)}

	h.mu.Lock()
	defer h.mu.Unlock()
	if h.locks == nil {
		h.locks = make(map[heldKey]heldLock)
	}
	h.dropLocked(at) // also so that the map refers to the new copy of the key
	h.count++
	lock.number = h.count
	h.locks[at] = lock
	h.bytes += len(both)
	if len(h.locks) > heldEntries || h.bytes > heldBytes {
		h.thinLocked()
	}
}

// Prolong notes that a remembered lock lasts longer now.
func (h *Held) Prolong(db int, key redlock.Key, token redlock.Token, validity time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := heldKey{db, key}
	if lock, ok := h.locks[at]; ok && lock.token == token {
		lock.until = time.Now().Add(validity)
		h.locks[at] = lock
	}
}

// Token is the token of the last acquired lock on key, if one is remembered.
func (h *Held) Token(db int, key redlock.Key) (redlock.Token, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	lock, ok := h.locks[heldKey{db, key}]
	return lock.token, ok
}

// sawToken notes that a client has sent the token of a lock over this connection.
func (h *Held) Speaks(db int, key redlock.Key, token redlock.Token) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if lock, ok := h.locks[heldKey{db, key}]; !ok || lock.token != token {
		h.pooled = true
	}
}

// Holds implements redlock.Owner. It returns the locks that only this connection
// will release: those renewed for it, and those it acquired. The latter count only
// if the connection belongs to no pool, where any connection may send the release.
// A lock that ended early without a command over this connection shows a pool, too.
func (h *Held) Holds(runs func(redlock.Lease) bool) []redlock.Lease {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	var own, bound []redlock.Lease
	for at, lock := range h.locks {
		one := redlock.Lease{DB: at.db, Key: at.key, Token: lock.token}
		left := lock.until.Sub(now)
		switch {
		case left <= 0:
		case !runs(one):
			h.pooled = h.pooled || left < unbounded/2
		case left > unbounded/2:
			bound = append(bound, one)
		default:
			own = append(own, one)
		}
	}
	if h.pooled {
		return bound
	}
	return append(bound, own...)
}

// Forget drops a lock that is no longer held, unless the key was acquired with
// another token since.
func (h *Held) Forget(db int, key redlock.Key, token redlock.Token) {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := heldKey{db, key}
	if h.locks[at].token == token {
		h.dropLocked(at)
	}
}

// Clear forgets everything.
func (h *Held) Clear() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.locks, h.bytes = nil, 0
}

func (h *Held) dropLocked(at heldKey) {
	if lock, ok := h.locks[at]; ok {
		h.bytes -= len(at.key) + len(lock.token)
		delete(h.locks, at)
	}
}

// evictLocked drops what has expired and then the oldest entries, down to three
// quarters of the bounds. The next sweep is then at least some acquisitions away,
// so its cost stays small for each of them.
func (h *Held) thinLocked() {
	now := time.Now()
	for at, lock := range h.locks {
		if lock.until.Before(now) {
			h.dropLocked(at)
		}
	}
	oldest := make([]heldKey, 0, len(h.locks))
	for at := range h.locks {
		oldest = append(oldest, at)
	}
	slices.SortFunc(oldest, func(a, b heldKey) int {
		return cmp.Compare(h.locks[a].number, h.locks[b].number)
	})
	for _, at := range oldest {
		if len(h.locks) <= heldEntries*3/4 && h.bytes <= heldBytes*3/4 {
			return
		}
		h.dropLocked(at)
	}
}
