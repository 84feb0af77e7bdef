// Who may look through another door than the port? Somebody of whom a name and a
// password are known.
package commands

import (
	"errors"
	"strings"

	"redlockd/redlock"
)

// Answers of Visit and Admit.
var (
	ErrNoLogin  = errors.New("name and password of a user are needed")
	ErrGuessing = errors.New("too many failed logins from this address or for this user, 10 and 20 per second are allowed; wait a second and try again")
	ErrNoPermit = errors.New("this user may not look at that")
)

// Categories of what is asked for at other doors: to look at figures and locks,
// to look into the process, to release what others hold.
const (
	CategoryRead  = categoryRead
	CategoryAdmin = categoryAdmin
	CategoryForce = categoryForce
)

// Visitor is somebody whom Visit let in. What they may is asked of the users at
// every question, as for a connection: who is gone may nothing any more.
type Visitor struct {
	table *Table
	name  string
}

// Visit lets a user in. Failed logins have limits of their own here, so that
// guesses at the admin endpoint keep no client from the port, nor the other way
// round. Without users everybody is let in.
func (t *Table) Visit(host, name, password string) (Visitor, error) {
	if t.env.Users == nil {
		return Visitor{table: t}, nil
	}
	if name == "" && password == "" {
		return Visitor{}, ErrNoLogin // nobody has tried anything
	}
	if refusal, ok := t.env.Users.login(&t.env.Users.http, host, name, password); !ok {
		if refusal.Text == guessing.Text {
			return Visitor{}, ErrGuessing
		}
		return Visitor{}, ErrNoLogin
	}
	return Visitor{t, strings.Clone(name)}, nil
}

// NeedsLogin tells whether there are users, so that nobody is let in unasked.
func (t *Table) NeedsLogin() bool { return t.env.Users != nil }

// Name of the user, "" where nobody needs a login.
func (v Visitor) Name() string { return v.name }

// May tells whether the visitor has a category.
func (v Visitor) May(category string) bool {
	if v.table.env.Users == nil {
		return true
	}
	who := v.table.env.Users.find(v.name)
	return who != nil && who.may(category)
}

// Sight tells which keys the visitor may see, as the users are now.
func (v Visitor) Sight() func(redlock.Key) bool { return v.table.sight(&Client{User: v.name}) }

// Admit tells whether the user may do what a category is needed for.
func (t *Table) Admit(host, name, password, category string) error {
	v, err := t.Visit(host, name, password)
	if err == nil && !v.May(category) {
		err = ErrNoPermit
	}
	return err
}
