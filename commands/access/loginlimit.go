// loginLimit bounds how often passwords are checked, by address and by user.

package access

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	// hostFailures are the failed logins per second that one address may have; as
	// many may come at once. A guesser gets less than a million tries a day.
	hostFailures = 10
	// userFailures are those that one user name may have from all addresses.
	userFailures = 20
	// reservedChecks are the passwords per second that are checked for an existing
	// user although a limit above is reached, so that guesses at other names behind the
	// same address lock no user out. Guesses at the user's own name can use them up;
	// then the user gets in only from addresses of earlier logins.
	reservedChecks = 2
	// maxBuckets are kept one by one, some 100 bytes each. Should more than these
	// fail within a second, the rest share one bucket.
	maxBuckets = 10_000
)

// loginLimit is the limit of one entrance: the port and the admin endpoint have
// one each. The zero value is ready.
type loginLimit struct {
	wrong   atomic.Int64 // passwords that were checked and wrong
	refused atomic.Int64 // logins refused without a check of the password

	hosts    throttle
	users    throttle // by name, whether or not such a user exists: the limit must not reveal it
	known    throttle // address and user of an earlier login: its own limit
	reserved throttle
}

// loginAttempt is one login while it is decided.
type loginAttempt struct {
	host, user string
	exists     bool // the user does
	reserved   bool // the check is one of reservedChecks
}

func (a *loginAttempt) pair() string { return a.host + " " + a.user }

// allows reports whether the password may be checked now. It consumes nothing;
// a no is the login's refusal and counted as such.
func (l *loginLimit) allows(a *loginAttempt, now time.Time) bool {
	switch {
	case l.hosts.hasToken(a.host, hostFailures, now) && l.users.hasToken(a.user, userFailures, now):
		return true
	case a.exists && l.known.has(a.pair()) && l.known.hasToken(a.pair(), hostFailures, now):
		return true
	case a.exists && l.reserved.hasToken(a.user, reservedChecks, now):
		a.reserved = true
		return true
	}
	l.refused.Add(1)
	return false
}

// failed counts a wrong password against everything that allowed it. The client
// must not learn of a reserved check: such checks exist for real users only.
func (l *loginLimit) failed(a *loginAttempt, now time.Time) {
	l.wrong.Add(1)
	l.hosts.take(a.host, hostFailures, now)
	l.users.take(a.user, userFailures, now)
	if l.known.has(a.pair()) {
		l.known.take(a.pair(), hostFailures, now)
	}
	if a.reserved {
		l.reserved.take(a.user, reservedChecks, now)
	}
}

// succeeded remembers that this user logs in from this address.
func (l *loginLimit) succeeded(a *loginAttempt) { l.known.keep(a.pair()) }

// throttle is a bucket for each name. The zero value is ready.
type throttle struct {
	mu      sync.Mutex
	buckets map[string]*Bucket
	rest    Bucket
}

// hasToken reports whether a name has a token left; it takes none.
func (t *throttle) hasToken(name string, perSecond float64, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.buckets[name]
	if b == nil && len(t.buckets) >= maxBuckets {
		b = &t.rest
	}
	return b == nil || b.missing(now, perSecond)+1 <= perSecond
}

// has reports whether a name has a bucket of its own.
func (t *throttle) has(name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buckets[name] != nil
}

// keep gives a name a bucket of its own, in place of any other one if need be.
func (t *throttle) keep(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.buckets[name] != nil {
		return
	}
	if len(t.buckets) >= maxBuckets {
		for any := range t.buckets {
			delete(t.buckets, any)
			break
		}
	}
	t.addLocked(name)
}

// take takes a token of a name.
func (t *throttle) take(name string, perSecond float64, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bucketLocked(name, perSecond, now).Take(now, perSecond)
}

func (t *throttle) bucketLocked(name string, perSecond float64, now time.Time) *Bucket {
	if b := t.buckets[name]; b != nil {
		return b
	}
	if len(t.buckets) >= maxBuckets {
		// Full buckets are as good as none. A sweep for every new name would make a
		// flood of them cost more than it should.
		if t.rest.missing(now, perSecond) == 0 {
			for old, b := range t.buckets {
				if b.missing(now, perSecond) == 0 {
					delete(t.buckets, old)
				}
			}
		}
		if len(t.buckets) >= maxBuckets {
			return &t.rest
		}
	}
	return t.addLocked(name)
}

func (t *throttle) addLocked(name string) *Bucket {
	if t.buckets == nil {
		t.buckets = make(map[string]*Bucket)
	}
	b := new(Bucket)
	t.buckets[name] = b
	return b
}
