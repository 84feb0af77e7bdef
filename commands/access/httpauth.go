// HTTP authentication: name and password of a user at the admin endpoint, and the
// user's permissions there.

package access

import (
	"errors"
	"strings"

	"redlockd/redlock"
)

// Errors of the admin endpoint.
var (
	ErrNoLogin         = errors.New("name and password of a user are needed")
	ErrTooManyFailures = errors.New("too many failed logins from this address or for this user, 10 and 20 per second are allowed; wait a second and try again")
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
		return HTTPUser{}, ErrNoLogin // not a guess
	}
	if err := u.login(&u.http, host, name, password); err != nil {
		if errors.Is(err, errTooManyFailures) {
			return HTTPUser{}, ErrTooManyFailures
		}
		return HTTPUser{}, ErrNoLogin
	}
	return HTTPUser{u, strings.Clone(name)}, nil
}

// NeedsLogin reports whether there are users, so that every request needs a login.
func (u *Users) NeedsLogin() bool { return u != nil }

// Name of the user, "" where no login is needed.
func (v HTTPUser) Name() string { return v.name }

// May reports whether the user has a category.
func (v HTTPUser) May(category string) bool {
	if v.users == nil {
		return true
	}
	who := v.users.Find(v.name)
	return who != nil && who.May(category)
}

// KeyFilter returns which keys the user may see, as the users are now.
func (v HTTPUser) KeyFilter() func(redlock.Key) bool { return v.users.KeyFilter(v.name) }
