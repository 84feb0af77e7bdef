// loginLimit bounds how often passwords are checked, by address and by user.

package access

import (
	"cmp"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
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
	// maxLimiters are kept one by one, some 150 bytes each. Should more than these
	// fail within a second, the rest share one.
	maxLimiters = 10_000
)

// loginLimit is the limit of one entrance: the port and the admin endpoint have
// one each.
type loginLimit struct {
	wrong   atomic.Int64 // passwords that were checked and wrong
	refused atomic.Int64 // logins refused without a check of the password

	mu       sync.Mutex
	hosts    throttle
	users    throttle // by name, whether or not such a user exists: the limit must not reveal it
	known    throttle // address and user of an earlier login: its own limit
	reserved throttle
}

func newLoginLimit() *loginLimit {
	return &loginLimit{
		hosts: newThrottle(hostFailures), users: newThrottle(userFailures),
		known: newThrottle(hostFailures), reserved: newThrottle(reservedChecks),
	}
}

type loginAttempt struct {
	host, user string
	exists     bool // the user does
	reserved   bool // the check is one of reservedChecks
}

func (a *loginAttempt) pair() string { return a.host + " " + a.user }

// allows reports whether the password may be checked now. It consumes nothing;
// a no is the login's refusal and counted as such.
func (l *loginLimit) allows(a *loginAttempt, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.hosts.hasToken(a.host, now) && l.users.hasToken(a.user, now):
		return true
	case a.exists && l.known.has(a.pair()) && l.known.hasToken(a.pair(), now):
		return true
	case a.exists && l.reserved.hasToken(a.user, now):
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
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hosts.take(a.host, now)
	l.users.take(a.user, now)
	if l.known.has(a.pair()) {
		l.known.take(a.pair(), now)
	}
	if a.reserved {
		l.reserved.take(a.user, now)
	}
}

// succeeded remembers that this user logs in from this address.
func (l *loginLimit) succeeded(a *loginAttempt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known.keep(a.pair())
}

// throttle limits each name to a number of tokens a second, and as many at once.
type throttle struct {
	each     int
	limiters map[string]*rate.Limiter
	rest     *rate.Limiter
}

func newLimiter(each int) *rate.Limiter { return rate.NewLimiter(rate.Limit(each), each) }

func newThrottle(each int) throttle {
	return throttle{each, make(map[string]*rate.Limiter), newLimiter(each)}
}

// hasToken reports whether a name has a token left; it takes none.
func (t *throttle) hasToken(name string, now time.Time) bool {
	l := t.limiters[name]
	if l == nil && len(t.limiters) >= maxLimiters {
		l = t.rest
	}
	return l == nil || l.TokensAt(now) >= 1
}

// has reports whether a name has a limiter of its own.
func (t *throttle) has(name string) bool { return t.limiters[name] != nil }

// keep gives a name a limiter of its own, in place of any other one if need be.
func (t *throttle) keep(name string) {
	if t.has(name) {
		return
	}
	if len(t.limiters) >= maxLimiters {
		for any := range t.limiters {
			delete(t.limiters, any)
			break
		}
	}
	t.limiters[name] = newLimiter(t.each)
}

func (t *throttle) take(name string, now time.Time) {
	full := func(l *rate.Limiter) bool { return l.TokensAt(now) >= float64(t.each) }
	if !t.has(name) && len(t.limiters) >= maxLimiters && full(t.rest) {
		// Full limiters are as good as none. A sweep for every new name would make a
		// flood of them cost more than it should.
		maps.DeleteFunc(t.limiters, func(_ string, l *rate.Limiter) bool { return full(l) })
	}
	if !t.has(name) && len(t.limiters) < maxLimiters {
		t.limiters[name] = newLimiter(t.each)
	}
	cmp.Or(t.limiters[name], t.rest).AllowN(now, 1)
}
