// LastAcquired remembers which lock a connection acquired last on each key, for
// DUNLOCK without a token, and whether it goes on with commands about other things.

package commands

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"redlockd/commands/access"
	"redlockd/redlock"
)

// A connection remembers at most this much. Dropping an entry costs no safety:
// the lock stays as it is, and DUNLOCK with its token releases it.
const (
	maxLastAcquired      = 1024
	maxLastAcquiredBytes = 128 << 10 // of keys and tokens; a key and a token may have 512 each
)

// Unbounded stands for the end of a lock that is renewed; heldLock reports its
// real end. Endless is that of HOLD without max-ms.
const (
	Unbounded = 10 * 365 * 24 * time.Hour
	Endless   = 2 * Unbounded
)

// A connection is in other use after that many commands in a row that name none of its
// endless locks, over at least that time.
const (
	minOtherCommands = 20
	minOtherTime     = 10 * time.Second
)

// LastAcquired remembers for each key the token with which a connection acquired
// it last. The zero value is ready and costs nothing until the first lock. Safe
// for concurrent use.
type LastAcquired struct {
	mu    sync.Mutex
	locks map[access.HeldKey]acquiredLock
	bytes int
	count uint64 // acquisitions so far, numbers them
	// sharedByPool: locks of other connections were released or extended over this
	// one, so a lock's holder need not use the connection that acquired it.
	sharedByPool bool

	endless  atomic.Int32 // how many of the locks are
	otherUse otherUse
}

type acquiredLock struct {
	token   redlock.Token
	until   time.Time // when its validity is used up
	number  uint64    // the larger, the later acquired
	endless time.Time // when it was acquired, if its renewal has no end

	handedOn bool // a RESET came since
}

// Remember notes an acquired lock in place of the former one of the key.
func (l *LastAcquired) Remember(db int, key redlock.Key, token redlock.Token, validity time.Duration) {
	// One private copy of both: the originals point into the buffer of a whole
	// command, which an entry would keep alive.
	both := string(key) + string(token)
	at := access.HeldKey{DB: db, Key: redlock.Key(both[:len(key)])}
	now := time.Now()
	lock := acquiredLock{token: redlock.Token(both[len(key):]), until: now.Add(validity)}

	l.mu.Lock()
	defer l.mu.Unlock()
	if l.locks == nil {
		l.locks = make(map[access.HeldKey]acquiredLock)
	}
	l.dropLocked(at) // also so that the map refers to the new copy of the key
	l.count++
	lock.number = l.count
	if validity == Endless {
		lock.endless = now
		l.endless.Add(1)
		l.otherUse.restart(now)
	}
	l.locks[at] = lock
	l.bytes += len(both)
	if len(l.locks) > maxLastAcquired || l.bytes > maxLastAcquiredBytes {
		l.evictLocked()
	}
}

// Prolong notes that a remembered lock lasts at least that long now. One that is renewed still does
// until its renewal ends.
func (l *LastAcquired) Prolong(db int, key redlock.Key, token redlock.Token, validity time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := access.HeldKey{DB: db, Key: key}
	if lock, ok := l.locks[at]; ok && lock.token == token {
		if until := time.Now().Add(validity); until.After(lock.until) {
			lock.until = until
			l.locks[at] = lock
		}
	}
}

// EndRenewal notes that a remembered lock is renewed no longer.
func (l *LastAcquired) EndRenewal(db int, key redlock.Key, token redlock.Token) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := access.HeldKey{DB: db, Key: key}
	if lock := l.locks[at]; lock.token == token && !lock.endless.IsZero() {
		lock.endless = time.Time{}
		l.locks[at] = lock
		l.endless.Add(-1)
	}
}

// Token is the token of the last acquired lock on key, if one is remembered.
func (l *LastAcquired) Token(db int, key redlock.Key) (redlock.Token, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lock, ok := l.locks[access.HeldKey{DB: db, Key: key}]
	return lock.token, ok && !lock.handedOn
}

// All are the remembered locks that Token finds, the latest first.
func (l *LastAcquired) All() (held []redlock.Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	latestFirst := slices.SortedFunc(maps.Keys(l.locks), func(a, b access.HeldKey) int {
		return -cmp.Compare(l.locks[a].number, l.locks[b].number)
	})
	for _, at := range latestFirst {
		if lock := l.locks[at]; !lock.handedOn {
			held = append(held, redlock.Lease{DB: at.DB, Key: at.Key, Token: lock.token})
		}
	}
	return held
}

// SawToken notes that a client has sent the token of a lock over this connection.
func (l *LastAcquired) SawToken(db int, key redlock.Key, token redlock.Token) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if lock, ok := l.locks[access.HeldKey{DB: db, Key: key}]; !ok || lock.token != token {
		l.sharedByPool = true
	}
}

// Holds implements redlock.Owner. It returns the locks that only this connection
// will release: those renewed for it, and those it acquired. The latter count only
// if the connection belongs to no pool, where any connection may send the release.
// A lock that ended early without a command over this connection shows a pool, too.
func (l *LastAcquired) Holds(runs func(redlock.Lease) bool) []redlock.Lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	var own, bound []redlock.Lease
	for at, lock := range l.locks {
		one := redlock.Lease{DB: at.DB, Key: at.Key, Token: lock.token}
		left := lock.until.Sub(now)
		switch {
		case left <= 0:
		case !runs(one):
			l.sharedByPool = l.sharedByPool || left < Unbounded/2
		case left > Unbounded/2:
			bound = append(bound, one)
		default:
			own = append(own, one)
		}
	}
	if l.sharedByPool {
		return bound
	}
	return append(bound, own...)
}

// otherUse counts commands since an endless lock was last acquired or named.
type otherUse struct {
	since    time.Time
	commands int
	reported bool
}

func (o *otherUse) restart(now time.Time) { o.since, o.commands = now, 0 }

// countUse counts a command with these arguments, and reports whether the connection is in
// other use and that was not reported yet.
func (l *LastAcquired) countUse(db int, args []string, isOther bool, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	use := &l.otherUse
	for _, argument := range args {
		if !l.locks[access.HeldKey{DB: db, Key: redlock.Key(argument)}].endless.IsZero() {
			use.restart(now)
			return false
		}
	}
	if use.reported || !isOther {
		return false
	}
	use.commands++
	return use.commands >= minOtherCommands && now.Sub(use.since) >= minOtherTime
}

// reportOtherUse returns the endless lock that was acquired first, and when. Other use is
// not reported again.
func (l *LastAcquired) reportOtherUse() (first redlock.Key, since time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.otherUse.reported = true
	for at, lock := range l.locks {
		if !lock.endless.IsZero() && (since.IsZero() || lock.endless.Before(since)) {
			first, since = at.Key, lock.endless
		}
	}
	return first, since
}

// Forget drops a lock that is no longer held, unless the key was acquired with
// another token since.
func (l *LastAcquired) Forget(db int, key redlock.Key, token redlock.Token) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := access.HeldKey{DB: db, Key: key}
	if l.locks[at].token == token {
		l.dropLocked(at)
	}
}

// HandOn is for RESET: the connection's next user must give tokens. Locks with HOLD still end
// with the connection, so they count as before for deadlocks and for other use.
func (l *LastAcquired) HandOn() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for at, lock := range l.locks {
		if lock.until.Before(time.Now().Add(Unbounded / 2)) {
			l.dropLocked(at)
		} else {
			lock.handedOn = true
			l.locks[at] = lock
		}
	}
}

func (l *LastAcquired) dropLocked(at access.HeldKey) {
	if lock, ok := l.locks[at]; ok {
		l.bytes -= len(at.Key) + len(lock.token)
		if !lock.endless.IsZero() {
			l.endless.Add(-1)
		}
		delete(l.locks, at)
	}
}

// evictLocked drops what has expired and then the oldest entries, down to three
// quarters of the bounds. The next sweep is then at least some acquisitions away,
// so its cost stays small for each of them.
func (l *LastAcquired) evictLocked() {
	now := time.Now()
	for at, lock := range l.locks {
		if lock.until.Before(now) {
			l.dropLocked(at)
		}
	}
	oldestFirst := slices.SortedFunc(maps.Keys(l.locks), func(a, b access.HeldKey) int {
		return cmp.Compare(l.locks[a].number, l.locks[b].number)
	})
	for _, at := range oldestFirst {
		if len(l.locks) <= maxLastAcquired*3/4 && l.bytes <= maxLastAcquiredBytes*3/4 {
			return
		}
		l.dropLocked(at)
	}
}
