// Logins: a name and a password become a user, within the login limit.

package access

import "strings"

// Refusal is why a login is refused, in the words of Redis where it has some.
type Refusal struct{ Code, Text string }

func (r *Refusal) Error() string { return r.Code + " " + r.Text }

// Refusals of logins.
var (
	ErrWrongPassword   = &Refusal{"WRONGPASS", "invalid username-password pair or user is disabled."}
	errBusyLogin       = &Refusal{"TRYLATER", "too many logins are being checked at once; try again in a second"}
	errTooManyFailures = &Refusal{"TRYLATER", "too many failed logins from this address or for this user, 10 and 20 per second are allowed; wait a second and try again"}
)

// SignIn makes a connection the user's and returns its own copy of the name, or a
// Refusal and changes nothing.
func (u *Users) SignIn(m *Member, host, name, password string) (string, error) {
	if err := u.login(&u.port, host, name, password); err != nil {
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
