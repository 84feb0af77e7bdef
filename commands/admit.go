// Who may look through another door than the port? Somebody of whom a name and a
// password are known, and who is gone after one question.
package commands

import "errors"

// Answers of Admit.
var (
	ErrNoLogin  = errors.New("name and password of a user are needed")
	ErrGuessing = errors.New("too many failed logins from this address, 10 per second are allowed")
	ErrNoPermit = errors.New("this user may not look at that")
)

// CategoryRead and CategoryAdmin are what a user needs to look at figures, and
// to look into the process.
const (
	CategoryRead  = categoryRead
	CategoryAdmin = categoryAdmin
)

// Admit tells whether the user may do what a category is needed for. Failed
// logins count with those of the port for the same host. Without users everybody
// may.
func (t *Table) Admit(host, name, password, category string) error {
	if t.env.Users == nil {
		return nil
	}
	client := Client{Host: host}
	if name == "" && password == "" {
		return ErrNoLogin // nobody has tried anything
	}
	if refusal, ok := t.signIn(&client, name, password); !ok {
		if refusal.Text == guessing.Text {
			return ErrGuessing
		}
		return ErrNoLogin
	}
	if who := t.user(&client); who == nil || !who.may(category) {
		return ErrNoPermit
	}
	return nil
}
