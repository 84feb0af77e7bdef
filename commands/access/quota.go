// Quotas of users: what one user may have at once and send per second. Held locks and
// attempts at work are counted as far as this daemon takes part: granted here, minus
// released or ended here, minus those whose time is over. An exclusive lock counts under
// its key, and the next one replaces it. Readers and permits hold a key beside one
// another, so each of them counts under a name of its own.

package access

import (
	"fmt"
	"strings"
	"time"

	"redlockd/redlock"
)

// WithinRate counts one command against the user's rate. A nil *Rights has none.
func (u *Users) WithinRate(who *Rights) error {
	if who == nil || who.Rate == 0 || who.limiter.AllowN(u.Now(), 1) {
		return nil
	}
	return fmt.Errorf("user '%s' may send %d commands per second (rate in the users file); nothing was done", who.Name, who.Rate)
}

// Reservation reserves one lock in a user's quota. The zero value is no limit.
type Reservation struct {
	users   *Users
	account *account
}

// ReserveKey finds a reservation for a lock on a key. A token that holds the key already, in
// whatever mode, takes the same reservation again.
func (u *Users) ReserveKey(who *Rights, db int, mode redlock.Kind, key redlock.Key, token redlock.Token) (Reservation, error) {
	if who == nil || who.Held == 0 {
		return Reservation{}, nil
	}
	at := QuotaKeyOf(db, mode, key, token)
	if token == "" {
		return u.Reserve(who, at)
	}
	return u.reserve(who, at, otherMode(db, mode, key, token), token)
}

// Reserve finds a reservation for what is held at a quota key. What the user holds there already,
// as in a retry or a hand-over, takes the same reservation again.
func (u *Users) Reserve(who *Rights, at HeldKey) (Reservation, error) {
	return u.reserve(who, at, at, "")
}

func (u *Users) reserve(who *Rights, at, other HeldKey, token redlock.Token) (Reservation, error) {
	if who == nil || who.Held == 0 {
		return Reservation{}, nil
	}
	u.ledger.mu.Lock()
	defer u.ledger.mu.Unlock()
	a := who.account
	_, again := a.leases[at]
	again = again || token != "" && a.leases[other].token == token
	if !again && len(a.leases)+a.reserved >= who.Held {
		u.ledger.sweepLocked(a, u.Now())
		if len(a.leases)+a.reserved >= who.Held {
			return Reservation{}, fmt.Errorf("user '%s' may hold %d locks at once (held in the users file); nothing was done", who.Name, who.Held)
		}
	}
	a.reserved++
	return Reservation{u, a}, nil
}

// Free gives the reservation back: nothing was granted.
func (r Reservation) Free() {
	if r.account == nil {
		return
	}
	r.users.ledger.mu.Lock()
	defer r.users.ledger.mu.Unlock()
	r.account.reserved--
}

// Fill turns the reservation into a lease of the token for that long.
func (r Reservation) Fill(at HeldKey, token redlock.Token, validity time.Duration) {
	if r.account == nil {
		return
	}
	l := &r.users.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	r.fillLocked(at, quotaLease{token: token, until: r.users.Now().Add(validity)})
}

// FillKey turns the reservation into a lock of the token for that long, if it is renewed until
// RenewalEnded. It takes the place of the lock that the token had in another mode.
func (r Reservation) FillKey(db int, mode redlock.Kind, key redlock.Key, token redlock.Token, validity time.Duration, renewed bool) {
	if r.account == nil {
		return
	}
	l := &r.users.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	l.endLocked(otherMode(db, mode, key, token), token)
	r.fillLocked(QuotaKeyOf(db, mode, key, token), quotaLease{token, r.users.Now().Add(validity), renewed})
}

func (r Reservation) fillLocked(at HeldKey, lease quotaLease) {
	// Copies: the originals point into the buffer of a whole command.
	at.Key = redlock.Key(strings.Clone(string(at.Key)))
	lease.token = redlock.Token(strings.Clone(string(lease.token)))
	l := &r.users.ledger
	r.account.reserved--
	l.dropLocked(at)
	r.account.leases[at] = lease
	r.account.noteLocked(lease.until)
	l.owners[at] = r.account
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
	case !a.leases[at].renewed:
		u.ledger.lastLocked(a, at, u.Now().Add(left))
	}
}

// RenewalEnded notes that the lock of a token is renewed no longer, and how long it goes on.
func (u *Users) RenewalEnded(db int, key redlock.Key, token redlock.Token, goesOn time.Duration) {
	if u == nil {
		return
	}
	l := &u.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, at := range []HeldKey{{db, key}, sharedQuotaKey(db, key, token)} {
		switch a := l.owners[at]; {
		case a == nil || a.leases[at].token != token:
		case goesOn <= 0:
			l.dropLocked(at)
		default:
			l.lastLocked(a, at, u.Now().Add(goesOn))
		}
	}
}

// HoldersOf is for a key that is about to be taken from all that hold it. Call taken when it
// was: those that got it meanwhile count on.
func (u *Users) HoldersOf(db int, key redlock.Key) (taken func()) {
	if u == nil {
		return func() {}
	}
	l := &u.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	holders := make(map[HeldKey]redlock.Token)
	for at, a := range l.owners {
		token := a.leases[at].token
		if at.DB == db && (at.Key == key || strings.HasSuffix(string(at.Key), string(key)) && at == sharedQuotaKey(db, key, token)) {
			holders[at] = token
		}
	}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		for at, token := range holders {
			l.endLocked(at, token)
		}
	}
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
// hold the key. The lock counts for so long, also if a renewal that ends frees its reservation before.
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
	lease.renewed = false
	a.leases[at], u.ledger.owners[at] = lease, a
	a.noteLocked(lease.until)
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
	for _, a := range u.ledger.accounts {
		delete(a.counters, at)
	}
}
