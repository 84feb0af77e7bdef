// Accounts: what each user has used up, and under which names.

package access

import (
	"crypto/sha256"
	"strconv"
	"sync"
	"time"

	"redlockd/redlock"
)

// account counts what a user has used up. It belongs to the name and survives a reload, also one
// that removes the user. All of it is guarded by the mutex of the ledger.
type account struct {
	reserved   int // acquires in flight, which may become locks
	leases     map[HeldKey]quotaLease
	nextExpiry time.Time // no lease ends before it; zero: not known

	counters map[counterName]struct{} // used, at most as many as the quota allows
}

// quotaLease is one thing that is held. While its renewal runs, it counts whatever its end.
type quotaLease struct {
	token   redlock.Token
	until   time.Time
	renewed bool
}

// ledger keeps the accounts. Only what users with a quota hold is in it, so it
// is never larger than the quotas together.
type ledger struct {
	mu       sync.Mutex
	accounts map[string]*account // by user; also of one that was removed, while it holds something
	owners   map[HeldKey]*account
}

func (l *ledger) accountOf(name string) *account {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.accounts[name] == nil {
		l.accounts[name] = &account{leases: make(map[HeldKey]quotaLease)}
	}
	return l.accounts[name]
}

// forget drops the accounts of users that are gone and have used nothing up.
func (l *ledger) forget(isUser func(name string) bool, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, a := range l.accounts {
		if !isUser(name) {
			l.sweepLocked(a, now)
			if a.reserved+len(a.leases)+len(a.counters) == 0 {
				delete(l.accounts, name)
			}
		}
	}
}

// lastLocked lets what is held count until then; nothing renews it.
func (l *ledger) lastLocked(a *account, at HeldKey, until time.Time) {
	a.leases[at] = quotaLease{token: a.leases[at].token, until: until}
	a.noteLocked(until)
}

// endLocked drops what the token holds there.
func (l *ledger) endLocked(at HeldKey, token redlock.Token) {
	if a := l.owners[at]; a != nil && a.leases[at].token == token {
		l.dropLocked(at)
	}
}

func (l *ledger) dropLocked(at HeldKey) {
	if a := l.owners[at]; a != nil {
		delete(a.leases, at)
		delete(l.owners, at)
	}
}

func (a *account) noteLocked(until time.Time) {
	if a.nextExpiry.IsZero() || until.Before(a.nextExpiry) {
		a.nextExpiry = until
	}
}

// sweepLocked drops what has expired. It runs only when something may have, so
// that repeated requests of a user at the limit cost nothing.
func (l *ledger) sweepLocked(a *account, now time.Time) {
	if now.Before(a.nextExpiry) {
		return
	}
	a.nextExpiry = time.Time{}
	for at, lease := range a.leases {
		if lease.until.After(now) {
			a.noteLocked(lease.until)
		} else {
			l.dropLocked(at)
		}
	}
}

// ReservedPrefix begins the names that the daemon uses on the masters for its own
// records. No lock has such a name.
const ReservedPrefix = "redlockd:"

type HeldKey struct {
	DB  int
	Key redlock.Key
}

// WorkQuotaKey is the quota key of an attempt at the work key. No lock can have it:
// its name would be a reserved one.
func WorkQuotaKey(db int, key redlock.Key) HeldKey {
	return HeldKey{db, ReservedPrefix + "work:" + key}
}

// sharedQuotaKey is the quota key of one of several holders of a key. No lock can
// have it: its name would be a reserved one.
func sharedQuotaKey(db int, key redlock.Key, token redlock.Token) HeldKey {
	return HeldKey{db, ReservedPrefix + "with:" + redlock.Key(token) + ":" + key}
}

// QuotaKeyOf is the quota key of a request for the key. A token that is still to
// be chosen holds nothing yet: it needs a new reservation.
func QuotaKeyOf(db int, mode redlock.Kind, key redlock.Key, token redlock.Token) HeldKey {
	if mode == redlock.Exclusive {
		return HeldKey{db, key}
	}
	return sharedQuotaKey(db, key, token)
}

// otherMode is the quota key that the token would have if it held the key in another mode.
func otherMode(db int, mode redlock.Kind, key redlock.Key, token redlock.Token) HeldKey {
	if mode == redlock.Exclusive {
		return sharedQuotaKey(db, key, token)
	}
	return HeldKey{db, key}
}

// counterName stands for a counter's name in a quota: a digest, so that the longest names
// cost no more memory than others. That bounds a user to about 50 bytes for each counter.
type counterName [16]byte

func counterNameOf(db int, name redlock.Key) counterName {
	sum := sha256.Sum256([]byte(strconv.Itoa(db) + ":" + string(name)))
	return counterName(sum[:16])
}
