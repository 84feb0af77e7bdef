// Logins at the port and at the admin endpoint: a name and a password become a user,
// within the login limit.

package access

import (
	"errors"
	"strings"

	"redlockd/redlock"
)

// Refusal names the reason for which a login is refused, in the words of Redis where it has some.
type Refusal struct{ Code, Text string }

func (r *Refusal) Error() string { return r.Code + " " + r.Text }

var (
	ErrWrongPassword   = &Refusal{"WRONGPASS", "invalid username-password pair or user is disabled."}
	errBusyLogin       = &Refusal{"TRYLATER", "too many logins are being checked at once; try again in a second"}
	errTooManyFailures = &Refusal{"TRYLATER", "too many failed logins from this address or for this user, 10 and 20 per second are allowed; wait a second and try again"}
)

// SignIn makes a connection the user's and returns its own copy of the name, or a
// Refusal and changes nothing.
func (u *Users) SignIn(m *Member, host, name, password string) (string, error) {
	if err := u.login(u.port, host, name, password); err != nil {
		return "", err
	}
	name = strings.Clone(name)
	return name, u.join(m, name)
}

// login checks a password within the login limit of the port or the admin endpoint.
func (u *Users) login(limit *loginLimit, host, name, password string) error {
	now := u.Now()
	attempt := loginAttempt{host: host, user: strings.Clone(name[:min(len(name), maxUserName)]), exists: u.Find(name) != nil}
	if !limit.allows(&attempt, now) {
		return errTooManyFailures
	}
	right, err := u.check(name, password)
	if err != nil {
		return errBusyLogin
	}
	if !right {
		limit.failed(&attempt, now)
		if attempt.reserved {
			return errTooManyFailures
		}
		return ErrWrongPassword
	}
	limit.succeeded(&attempt)
	return nil
}

var (
	errNoLogin         = errors.New("name and password of a user are needed")
	ErrTooManyFailures = errors.New(errTooManyFailures.Text)
	ErrNoPermission    = errors.New("this user may not look at that")
)

// HTTPUser is an authenticated user of the admin endpoint. Every check reads the
// current users, as for a connection: a removed user may do nothing any more.
type HTTPUser struct {
	users *Users
	name  string
}

// Authenticate checks name and password. Failed logins have limits of their own
// here, so that guesses at the admin endpoint keep no client from the port, nor the
// other way round. Without users every login succeeds.
func (u *Users) Authenticate(host, name, password string) (HTTPUser, error) {
	if u == nil {
		return HTTPUser{}, nil
	}
	if name == "" && password == "" {
		return HTTPUser{}, errNoLogin // not a guess
	}
	if err := u.login(u.http, host, name, password); err != nil {
		if errors.Is(err, errTooManyFailures) {
			return HTTPUser{}, ErrTooManyFailures
		}
		return HTTPUser{}, errNoLogin
	}
	return HTTPUser{u, strings.Clone(name)}, nil
}

// NeedsLogin reports whether there are users, so that every request needs a login.
func (u *Users) NeedsLogin() bool { return u != nil }

// Name of the user, "" where no login is needed.
func (h HTTPUser) Name() string { return h.name }

func (h HTTPUser) May(category string) bool { return h.users.Find(h.name).May(category) }

// KeyFilter returns which keys the user may see, as the users are now.
func (h HTTPUser) KeyFilter() func(redlock.Key) bool { return h.users.KeyFilter(h.name) }
