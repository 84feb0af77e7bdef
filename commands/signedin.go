// The connections of each user, from the login to their end. A reload ends those of
// removed users.

package commands

import (
	"fmt"
	"sync"
)

// signedIn are the connections by the name of their user. Its mutex also orders
// logins and reloads: a login that a reload overtakes is refused or ended by it.
type signedIn struct {
	mu    sync.Mutex
	users map[string]map[*Client]struct{}
}

// join makes the client one of the user's connections, or returns why it may not be.
func (u *Users) join(client *Client, name string) (refusal Reply, ok bool) {
	s := &u.signedIn
	s.mu.Lock()
	who := u.find(name)
	if who == nil { // the user has gone since the password was checked
		s.mu.Unlock()
		return wrongPassword, false
	}
	if who.connections > 0 && client.countedUser != name && len(s.users[name]) >= who.connections {
		s.mu.Unlock()
		return Error("TRYLATER", fmt.Sprintf("user '%s' has %d connections, as many as are allowed (connections in the users file); nothing was done; close one of them", name, who.connections)), false
	}
	s.removeLocked(client)
	if s.users == nil {
		s.users = make(map[string]map[*Client]struct{})
	}
	if s.users[name] == nil {
		s.users[name] = make(map[*Client]struct{})
	}
	s.users[name][client] = struct{}{}
	client.countedUser = name
	s.mu.Unlock()
	client.OnClose.setSignOut(func() { u.signOut(client) })
	return Reply{}, true
}

// signOut ends the client's place; a second call does nothing. A nil *Users has none.
func (u *Users) signOut(client *Client) {
	if u == nil {
		return
	}
	u.signedIn.mu.Lock()
	defer u.signedIn.mu.Unlock()
	u.signedIn.removeLocked(client)
}

func (s *signedIn) removeLocked(client *Client) {
	of := s.users[client.countedUser]
	delete(of, client)
	if len(of) == 0 {
		delete(s.users, client.countedUser)
	}
	client.countedUser = ""
}

// enforce puts a roster in force and returns the connections of users that are not in it.
func (u *Users) enforce(r *roster) (gone []*Client, why []Expelled) {
	s := &u.signedIn
	s.mu.Lock()
	defer s.mu.Unlock()
	u.roster.Store(r)
	for name, of := range s.users {
		if r.users[name] != nil {
			continue
		}
		for client := range of {
			gone, why = append(gone, client), append(why, removed(name))
		}
	}
	return gone, why
}

// removed is the error that the connections of a removed user receive.
func removed(name string) Expelled {
	return Expelled("user '" + name + "' was removed or disabled; this connection is closed")
}
