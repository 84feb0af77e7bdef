// The connections of each user, from the login to their end. A reload ends those of
// removed users.

package access

import (
	"fmt"
	"sync"
)

// signedIn are the connections by the name of their user. Its mutex also orders
// logins and reloads: a login that a reload overtakes is refused or ended by it.
type signedIn struct {
	mu    sync.Mutex
	users map[string]map[*Member]struct{}
}

// Member is one connection among those of its user. The zero value belongs to none.
type Member struct {
	// Expel ends the connection because its user was removed. It never blocks.
	// nil: there is no connection to end.
	Expel func(why string)

	user string // the user under which it counts; guarded by the mutex of signedIn
}

// join makes the client one of the user's connections, or returns why it may not be.
func (u *Users) join(m *Member, name string) error {
	s := &u.signedIn
	s.mu.Lock()
	defer s.mu.Unlock()
	who := u.Find(name)
	switch {
	case who == nil: // the user has gone since the password was checked
		return ErrWrongPassword
	case who.Connections > 0 && m.user != name && len(s.users[name]) >= who.Connections:
		return &Refusal{"TRYLATER", fmt.Sprintf("user '%s' has %d connections, as many as are allowed (connections in the users file); nothing was done; close one of them", name, who.Connections)}
	}
	s.removeLocked(m)
	if s.users[name] == nil {
		s.users[name] = make(map[*Member]struct{})
	}
	s.users[name][m] = struct{}{}
	m.user = name
	return nil
}

// SignOut ends the client's place; a second call does nothing. A nil *Users has none.
func (u *Users) SignOut(m *Member) {
	if u == nil {
		return
	}
	u.signedIn.mu.Lock()
	defer u.signedIn.mu.Unlock()
	u.signedIn.removeLocked(m)
}

func (s *signedIn) removeLocked(m *Member) {
	of := s.users[m.user]
	delete(of, m)
	if len(of) == 0 {
		delete(s.users, m.user)
	}
	m.user = ""
}

// enforce puts a roster in force and returns the connections of users that are not in it,
// with the reason to end them.
func (u *Users) enforce(r *roster) map[*Member]string {
	s := &u.signedIn
	s.mu.Lock()
	defer s.mu.Unlock()
	u.roster.Store(r)
	gone := make(map[*Member]string)
	for name, of := range s.users {
		for m := range of {
			if r.users[name] == nil {
				gone[m] = Removed(name)
			}
		}
	}
	return gone
}

// Removed is the reason that the connections of a removed user receive.
func Removed(name string) string {
	return "user '" + name + "' was removed or disabled; this connection is closed"
}
