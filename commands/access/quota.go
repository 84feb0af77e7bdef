// Quotas of users: what one user may have at once and send per second. Held locks and
// attempts at work are counted as far as this daemon takes part: granted here, minus
// released or ended here, minus those whose time is over. An exclusive lock counts under
// its key, and the next one replaces it. Readers and permits hold a key beside one
// another, so each of them counts under a name of its own.

package access

import (
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"redlockd/redlock"
)

// account is what a user has used up. It belongs to the name and survives a
// reload. All of it is guarded by the mutex of the ledger.
type account struct {
	reserved   int // acquires in flight, which may become locks
	leases     map[HeldKey]quotaLease
	nextExpiry time.Time // no lease ends before it; zero: not known

	counters map[counterName]struct{} // used, at most as many as the quota allows
}

type quotaLease struct {
	token redlock.Token
	until time.Time
}

// ledger keeps the accounts. Only what users with a quota hold is in it, so it
// is never larger than the quotas together.
type ledger struct {
	mu     sync.Mutex
	owners map[HeldKey]*account
}

// WithinRate counts one command against the user's rate. A nil *Rights has none.
func (u *Users) WithinRate(who *Rights) error {
	if who == nil || who.Rate == 0 || who.limiter.AllowN(u.Now(), 1) {
		return nil
	}
	return fmt.Errorf("user '%s' may send %d commands per second (rate in the users file); nothing was done", who.Name, who.Rate)
}

// Slot reserves one lock in a user's quota. The zero value is no limit.
type Slot struct {
	users   *Users
	account *account
}

// Reserve finds a slot for a lock on key. A key that the user holds already, as in a
// retry or a hand-over, takes the same slot again.
func (u *Users) Reserve(who *Rights, at HeldKey) (Slot, error) {
	if who == nil || who.Held == 0 {
		return Slot{}, nil
	}
	u.ledger.mu.Lock()
	defer u.ledger.mu.Unlock()
	a := who.account
	if _, again := a.leases[at]; !again && len(a.leases)+a.reserved >= who.Held {
		u.ledger.sweepLocked(a, u.Now())
		if len(a.leases)+a.reserved >= who.Held {
			return Slot{}, fmt.Errorf("user '%s' may hold %d locks at once (held in the users file); nothing was done", who.Name, who.Held)
		}
	}
	a.reserved++
	return Slot{u, a}, nil
}

// Free gives the slot back: nothing was granted.
func (p Slot) Free() {
	if p.account == nil {
		return
	}
	p.users.ledger.mu.Lock()
	defer p.users.ledger.mu.Unlock()
	p.account.reserved--
}

// Fill turns the slot into a lease of the token for that long.
func (p Slot) Fill(at HeldKey, token redlock.Token, validity time.Duration) {
	if p.account == nil {
		return
	}
	// Copies: the originals point into the buffer of a whole command.
	at.Key = redlock.Key(strings.Clone(string(at.Key)))
	token = redlock.Token(strings.Clone(string(token)))
	u, l := p.users, &p.users.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	p.account.reserved--
	l.dropLocked(at)
	until := u.Now().Add(validity)
	p.account.leases[at] = quotaLease{token, until}
	p.account.noteLocked(until)
	l.owners[at] = p.account
}

// Released notes that a token does not hold key any more, whatever ended it.
func (u *Users) Released(at HeldKey, token redlock.Token) { u.change(at, token, false, 0) }

// Prolonged notes that a token holds key for longer.
func (u *Users) Prolonged(at HeldKey, token redlock.Token, validity time.Duration) {
	u.change(at, token, false, validity)
}

// Changed notes that a lock lasts that long from now, whatever its token; 0 = it is gone.
func (u *Users) Changed(at HeldKey, left time.Duration) { u.change(at, "", true, left) }

func (u *Users) change(at HeldKey, token redlock.Token, anyToken bool, left time.Duration) {
	if u == nil {
		return
	}
	u.ledger.mu.Lock()
	defer u.ledger.mu.Unlock()
	a := u.ledger.owners[at]
	switch {
	case a == nil || !anyToken && a.leases[at].token != token:
	case left <= 0:
		u.ledger.dropLocked(at)
	default:
		until := u.Now().Add(left)
		a.leases[at] = quotaLease{a.leases[at].token, until}
		a.noteLocked(until)
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
// be chosen holds nothing yet: it needs a new slot.
func QuotaKeyOf(db int, mode redlock.Mode, key redlock.Key, token redlock.Token) HeldKey {
	if mode == redlock.Exclusive {
		return HeldKey{db, key}
	}
	return sharedQuotaKey(db, key, token)
}

// ReleasedKey notes that the token no longer holds the key, in whatever mode it did.
func (u *Users) ReleasedKey(db int, key redlock.Key, token redlock.Token) {
	if u == nil {
		return
	}
	u.Released(HeldKey{db, key}, token)
	u.Released(sharedQuotaKey(db, key, token), token)
}

// ProlongedKey notes that the token holds the key for longer, in whatever mode it does.
func (u *Users) ProlongedKey(db int, key redlock.Key, token redlock.Token, validity time.Duration) {
	if u == nil {
		return
	}
	u.Prolonged(HeldKey{db, key}, token, validity)
	u.Prolonged(sharedQuotaKey(db, key, token), token, validity)
}

// KeepKey is for a token that is about to give up the key, in whatever mode it holds it, while
// the lock on it goes on for some time. Call goesOn with that time, unless the token did not
// hold the key. The lock counts for so long, also if a renewal that ends frees its slot before.
func (u *Users) KeepKey(db int, key redlock.Key, token redlock.Token) (goesOn func(left time.Duration)) {
	if u == nil {
		return func(time.Duration) {}
	}
	u.ledger.mu.Lock()
	defer u.ledger.mu.Unlock()
	for _, at := range []HeldKey{{db, key}, sharedQuotaKey(db, key, token)} {
		a := u.ledger.owners[at]
		if a == nil || a.leases[at].token != token {
			continue
		}
		lease := a.leases[at]
		return func(left time.Duration) { u.keep(a, at, lease, left) }
	}
	return func(time.Duration) {}
}

// keep counts a lease for that long, or until it was to end, unless another has its place.
func (u *Users) keep(a *account, at HeldKey, lease quotaLease, left time.Duration) {
	u.ledger.mu.Lock()
	defer u.ledger.mu.Unlock()
	if owner := u.ledger.owners[at]; owner != nil && (owner != a || a.leases[at].token != lease.token) {
		return
	}
	at.Key, lease.token = redlock.Key(strings.Clone(string(at.Key))), redlock.Token(strings.Clone(string(lease.token)))
	if until := u.Now().Add(left); until.Before(lease.until) {
		lease.until = until
	}
	a.leases[at], u.ledger.owners[at] = lease, a
	a.noteLocked(lease.until)
}

// counterName stands for a counter's name in a quota: a digest, so that the longest names
// cost no more memory than others. That bounds a user to about 50 bytes for each counter.
type counterName [16]byte

func counterNameOf(db int, name redlock.Key) counterName {
	sum := sha256.Sum256([]byte(strconv.Itoa(db) + ":" + string(name)))
	return counterName(sum[:16])
}

// MayCount notes that the user uses a counter, or refuses it. A counter stays on the
// masters for ever, so its name counts until DIDS DEL of it through this daemon, or the
// daemon's end; also if the request yields no id: some master may have it all the same.
func (u *Users) MayCount(who *Rights, db int, name redlock.Key) error {
	if who == nil || who.Counters == 0 {
		return nil
	}
	at := counterNameOf(db, name)
	u.ledger.mu.Lock()
	defer u.ledger.mu.Unlock()
	a := who.account
	if _, known := a.counters[at]; known {
		return nil
	}
	if len(a.counters) >= who.Counters {
		return fmt.Errorf("user '%s' may use %d counters (counters in the users file) and has used as many others since this daemon started; nothing was done; use one of them, or have an admin delete one with DIDS DEL", who.Name, who.Counters)
	}
	if a.counters == nil {
		a.counters = make(map[counterName]struct{})
	}
	a.counters[at] = struct{}{}
	return nil
}

// CounterGone takes a deleted counter from the quotas of all users.
func (u *Users) CounterGone(db int, name redlock.Key) {
	if u == nil {
		return
	}
	at := counterNameOf(db, name)
	u.ledger.mu.Lock()
	defer u.ledger.mu.Unlock()
	for _, who := range u.roster.Load().users {
		delete(who.account.counters, at)
	}
}
