// Quotas of users: what one user may have at once and send per second. Held locks and
// attempts at work are counted as far as this daemon takes part: granted here, minus
// released or ended here, minus those whose time is over.

package access

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"redlockd/redlock"
)

// account is what a user has used up. It belongs to the name and survives a
// reload. All of it is guarded by the mutex of the ledger.
type account struct {
	spent      Bucket
	reserved   int // acquires in flight, which may become locks
	leases     map[HeldKey]quotaLease
	nextExpiry time.Time // no lease ends before it; zero: not known

	counters map[counterName]struct{} // used, at most as many as the quota allows
}

type quotaLease struct {
	token redlock.Token
	until time.Time
}

func newAccount() *account { return &account{leases: make(map[HeldKey]quotaLease)} }

// ledger keeps the accounts. Only what users with a quota hold is in it, so it
// is never larger than the quotas together.
type ledger struct {
	mu     sync.Mutex
	owners map[HeldKey]*account
}

// WithinRate counts one command against the user's rate.
func (u *Users) WithinRate(who *Rights) error {
	if who.rate == 0 {
		return nil
	}
	u.ledger.mu.Lock()
	defer u.ledger.mu.Unlock()
	if who.account.spent.Take(u.Now(), float64(who.rate)) {
		return nil
	}
	return fmt.Errorf("user '%s' may send %d commands per second (rate in the users file); nothing was done", who.name, who.rate)
}

// Slot reserves one lock in a user's quota. The zero value is no limit.
type Slot struct {
	users   *Users
	account *account
}

// Reserve finds a slot for a lock on key. A key that the user holds already, as in a
// retry or a hand-over, takes the same slot again.
func (u *Users) Reserve(who *Rights, at HeldKey) (Slot, error) {
	if who == nil || who.held == 0 {
		return Slot{}, nil
	}
	u.ledger.mu.Lock()
	defer u.ledger.mu.Unlock()
	a := who.account
	if _, again := a.leases[at]; !again && len(a.leases)+a.reserved >= who.held {
		u.ledger.sweepLocked(a, u.Now())
		if len(a.leases)+a.reserved >= who.held {
			return Slot{}, fmt.Errorf("user '%s' may hold %d locks at once (held in the users file); nothing was done", who.name, who.held)
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
func (u *Users) Released(at HeldKey, token redlock.Token) {
	if u == nil {
		return
	}
	u.ledger.mu.Lock()
	defer u.ledger.mu.Unlock()
	if a := u.ledger.owners[at]; a != nil && a.leases[at].token == token {
		u.ledger.dropLocked(at)
	}
}

// Prolonged notes that a token holds key for longer.
func (u *Users) Prolonged(at HeldKey, token redlock.Token, validity time.Duration) {
	if u == nil {
		return
	}
	u.ledger.mu.Lock()
	defer u.ledger.mu.Unlock()
	if a := u.ledger.owners[at]; a != nil && a.leases[at].token == token {
		until := u.Now().Add(validity)
		a.leases[at] = quotaLease{token, until}
		a.noteLocked(until)
	}
}

// Changed notes that a lock lasts that long from now, whatever its token; 0 = it is gone.
func (u *Users) Changed(at HeldKey, left time.Duration) {
	if u == nil {
		return
	}
	u.ledger.mu.Lock()
	defer u.ledger.mu.Unlock()
	a := u.ledger.owners[at]
	if a == nil {
		return
	}
	if left <= 0 {
		u.ledger.dropLocked(at)
		return
	}
	until := u.Now().Add(left)
	a.leases[at] = quotaLease{a.leases[at].token, until}
	a.noteLocked(until)
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
