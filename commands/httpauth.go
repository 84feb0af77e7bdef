// HTTP authentication: name and password of a user at the admin endpoint, and the
// user's permissions there.

package commands

import (
	"errors"
	"strings"

	"redlockd/redlock"
)

// Errors of Authenticate and Authorize.
var (
	ErrNoLogin         = errors.New("name and password of a user are needed")
	ErrTooManyFailures = errors.New("too many failed logins from this address or for this user, 10 and 20 per second are allowed; wait a second and try again")
	ErrNoPermission    = errors.New("this user may not look at that")
)

// Categories for the admin endpoint: to read statistics and locks, to inspect the
// process, to release what others hold.
const (
	CategoryRead  = categoryRead
	CategoryAdmin = categoryAdmin
	CategoryForce = categoryForce
)

// HTTPUser is an authenticated user of the admin endpoint. Every check reads the
// current users, as for a connection: a removed user may do nothing any more.
type HTTPUser struct {
	table *Table
	name  string
}

// Authenticate checks name and password. Failed logins have limits of their own
// here, so that guesses at the admin endpoint keep no client from the port, nor the
// other way round. Without users every login succeeds.
func (t *Table) Authenticate(host, name, password string) (HTTPUser, error) {
	if t.deps.Users == nil {
		return HTTPUser{table: t}, nil
	}
	if name == "" && password == "" {
		return HTTPUser{}, ErrNoLogin // not a guess
	}
	if refusal, ok := t.deps.Users.login(&t.deps.Users.http, host, name, password); !ok {
		if refusal.Text == tooManyFailures.Text {
			return HTTPUser{}, ErrTooManyFailures
		}
		return HTTPUser{}, ErrNoLogin
	}
	return HTTPUser{t, strings.Clone(name)}, nil
}

// NeedsLogin reports whether there are users, so that every request needs a login.
func (t *Table) NeedsLogin() bool { return t.deps.Users != nil }

// Name of the user, "" where no login is needed.
func (v HTTPUser) Name() string { return v.name }

// May reports whether the user has a category.
func (v HTTPUser) May(category string) bool {
	if v.table.deps.Users == nil {
		return true
	}
	who := v.table.deps.Users.find(v.name)
	return who != nil && who.may(category)
}

// KeyFilter returns which keys the user may see, as the users are now.
func (v HTTPUser) KeyFilter() func(redlock.Key) bool { return v.table.keyFilter(&Client{User: v.name}) }

// Authorize reports whether the user exists and has a category.
func (t *Table) Authorize(host, name, password, category string) error {
	v, err := t.Authenticate(host, name, password)
	if err == nil && !v.May(category) {
		err = ErrNoPermission
	}
	return err
}
