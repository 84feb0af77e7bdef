// Who may do what? Users are kept by name in a roster that is replaced as a
// whole, so that a reload never shows half of it. A connection knows its user
// by name and asks for it at every command: a user who is gone is gone at once.
package commands

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// defaultUser is whom every connection is before it says otherwise.
const defaultUser = "default"

// MostPasswords is how many passwords a user may have, for rotation. All of the
// places are always compared, taken or not.
const MostPasswords = 4

// maxUserName bounds what a connection keeps of its user.
const maxUserName = 128

// Categories are what a user can be granted, in the order of the documentation.
func Categories() []string {
	return []string{categoryLock, categoryRead, categoryID, categoryWork, categoryAdmin, categoryForce}
}

// User is one user as an operator describes them. The zero value of a limit
// means that there is none.
type User struct {
	Name      string
	Passwords [][sha256.Size]byte // SHA-256 of each password that is accepted
	Keys      []string            // globs; a command's key must match one
	Commands  []string            // Categories that may be used
	Held      int                 // locks held at once
	Rate      int                 // commands per second, those of Categories
	Disabled  bool
}

// Everything is a user who may do all, with one password.
func Everything(name, password string) User {
	return User{Name: name, Passwords: [][sha256.Size]byte{sha256.Sum256([]byte(password))}, Keys: []string{"*"}, Commands: Categories()}
}

// Users answers who somebody is and what they may. It is safe for concurrent
// use. A nil *Users knows the default user alone, who needs no password and may
// do everything.
type Users struct {
	decoy  [MostPasswords][sha256.Size]byte // random: what is compared for a name that nobody has
	hash   func([]byte) [sha256.Size]byte   // tests count its calls
	now    func() time.Time
	port   loginLimit // of clients' connections
	http   loginLimit // of the admin endpoint
	ledger ledger

	mu     sync.Mutex // orders Replace
	roster atomic.Pointer[map[string]*user]
}

// user is a User ready for questions.
type user struct {
	name       string
	digests    [MostPasswords][sha256.Size]byte
	keys       []glob
	categories []string
	held       int
	rate       int
	account    *account // outlives a reload
}

// NewUsers checks the users; the error names user, value and what is allowed.
func NewUsers(list []User) (*Users, error) {
	u := &Users{hash: func(b []byte) [sha256.Size]byte { return sha256.Sum256(b) }, now: time.Now}
	u.ledger.owners = make(map[heldKey]*account)
	for i := range u.decoy {
		rand.Read(u.decoy[i][:]) // never fails: the runtime ends the process instead
	}
	return u, u.Replace(list)
}

// Replace puts another list in force, at once and for all connections, or
// leaves everything as it is and says why.
func (u *Users) Replace(list []User) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	before := u.roster.Load()
	roster := make(map[string]*user, len(list))
	var errs []error
	for _, given := range list {
		made, err := u.prepare(given)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("user %q %w", given.Name, err))
		case roster[given.Name] != nil:
			errs = append(errs, fmt.Errorf("user %q is there twice: leave one out", given.Name))
		}
		if before != nil && (*before)[given.Name] != nil {
			made.account = (*before)[given.Name].account
		}
		roster[given.Name] = made
		if given.Disabled {
			delete(roster, given.Name)
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	u.roster.Store(&roster)
	return nil
}

// prepare checks one user; the error is the rest of a sentence.
func (u *Users) prepare(given User) (*user, error) {
	made := &user{
		name: given.Name, digests: u.decoy, categories: given.Commands,
		held: given.Held, rate: given.Rate, account: newAccount(),
	}
	copy(made.digests[:], given.Passwords)
	switch {
	case given.Name == "" || len(given.Name) > maxUserName || !printable(given.Name):
		return made, fmt.Errorf("has a name that is not 1 to %d visible ASCII characters", maxUserName)
	case len(given.Passwords) == 0 && !given.Disabled:
		return made, errors.New("has no password: give password-sha256, or enabled = false")
	case len(given.Passwords) > MostPasswords:
		return made, fmt.Errorf("has %d passwords, allowed are 1 to %d", len(given.Passwords), MostPasswords)
	case given.Held < 0 || given.Rate < 0:
		return made, fmt.Errorf("has held = %d and rate = %d, allowed are 0 (no limit) and more", given.Held, given.Rate)
	}
	for _, category := range given.Commands {
		if !slices.Contains(Categories(), category) {
			return made, fmt.Errorf("has the command category %q, allowed are %s", category, strings.Join(Categories(), ", "))
		}
	}
	for _, pattern := range given.Keys {
		g, err := newGlob(pattern)
		if err != nil {
			return made, fmt.Errorf("has the key pattern %q, which %w", pattern, err)
		}
		made.keys = append(made.keys, g)
	}
	return made, nil
}

// find is the user of that name, nil if there is none or they are disabled.
func (u *Users) find(name string) *user { return (*u.roster.Load())[name] }

// check tells whether the password is the user's. A name that nobody has costs
// what a wrong password costs: one hash and all comparisons.
func (u *Users) check(name, password string) bool {
	who := u.find(name)
	digests := &u.decoy
	if who != nil {
		digests = &who.digests
	}
	said := u.hash([]byte(password))
	same := 0
	for i := range digests {
		same |= subtle.ConstantTimeCompare(said[:], digests[i][:])
	}
	return who != nil && same == 1
}

// refusedLogins counts logins since the start: all that were refused, and those
// of them whose password was not checked. A nil *Users refuses none.
func (u *Users) refusedLogins() (all, unchecked int64) {
	if u == nil {
		return 0, 0
	}
	unchecked = u.port.refused.Load() + u.http.refused.Load()
	return u.port.wrong.Load() + u.http.wrong.Load() + unchecked, unchecked
}

// may tells whether the user's categories include one.
func (w *user) may(category string) bool {
	return category == categoryConnection || slices.Contains(w.categories, category)
}

// mayUse tells whether one of the user's patterns covers a name.
func (w *user) mayUse(name string) bool {
	for i := range w.keys {
		if w.keys[i].matches(name) {
			return true
		}
	}
	return false
}
