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
	ErrNoLogin  = errors.New("name and password of a user are needed")
	ErrGuessing = errors.New("too many failed logins from this address or for this user, 10 and 20 per second are allowed; wait a second and try again")
	ErrNoPermit = errors.New("this user may not look at that")
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
type Visitor struct {
	table *Table
	name  string
}

// Authenticate checks name and password. Failed logins have limits of their own
// here, so that guesses at the admin endpoint keep no client from the port, nor the
// other way round. Without users every login succeeds.
func (t *Table) Visit(host, name, password string) (Visitor, error) {
	if t.env.Users == nil {
		return Visitor{table: t}, nil
	}
	if name == "" && password == "" {
		return Visitor{}, ErrNoLogin // not a guess
	}
	if refusal, ok := t.env.Users.login(&t.env.Users.http, host, name, password); !ok {
		if refusal.Text == guessing.Text {
			return Visitor{}, ErrGuessing
		}
		return Visitor{}, ErrNoLogin
	}
	return Visitor{t, strings.Clone(name)}, nil
}

// NeedsLogin reports whether there are users, so that every request needs a login.
func (t *Table) NeedsLogin() bool { return t.env.Users != nil }

// Name of the user, "" where no login is needed.
func (v Visitor) Name() string { return v.name }

// May reports whether the user has a category.
func (v Visitor) May(category string) bool {
	if v.table.env.Users == nil {
		return true
	}
	who := v.table.env.Users.find(v.name)
	return who != nil && who.may(category)
}

// KeyFilter returns which keys the user may see, as the users are now.
func (v Visitor) Sight() func(redlock.Key) bool { return v.table.sight(&Client{User: v.name}) }

// Authorize reports whether the user exists and has a category.
func (t *Table) Admit(host, name, password, category string) error {
	v, err := t.Visit(host, name, password)
	if err == nil && !v.May(category) {
		err = ErrNoPermit
	}
	return err
}
