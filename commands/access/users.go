// Users and their permissions. Users are kept by name in a roster that is replaced as
// a whole, so that a reload never shows half of it. A connection keeps its user's name
// and looks it up at every command: a removed user loses its rights at once, and its
// connections are ended.

package access

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"redlockd/commands/glob"
	"redlockd/redlock"

	"golang.org/x/time/rate"
)

// Categories of commands. Users are granted categories.
const (
	CategoryLock       = "lock"       // takes, prolongs and releases locks
	CategoryRead       = "read"       // reads and changes nothing
	CategoryID         = "id"         // gives ids
	CategoryWork       = "work"       // takes and ends attempts at work
	CategoryAdmin      = "admin"      // commands for operators
	CategoryForce      = "force"      // takes locks away from others
	CategoryEvents     = "events"     // subscribes; every user may unless it is denied
	CategoryInfo       = "info"       // describes the daemon; every user may unless it is denied
	CategoryConnection = "connection" // every client may send these
)

// GrantedToAll reports whether users have a category without a grant. Client
// libraries send such commands when they connect.
func GrantedToAll(category string) bool {
	return category == CategoryConnection || category == CategoryEvents || category == CategoryInfo
}

// Categories can be granted to a user, in the order of the documentation.
func Categories() []string {
	return []string{CategoryLock, CategoryRead, CategoryID, CategoryWork, CategoryAdmin, CategoryForce}
}

// deniable are the categories that every user has unless they are denied.
func deniable() []string { return []string{CategoryEvents, CategoryInfo} }

// DefaultUser is the user of every connection that has not authenticated as another.
const DefaultUser = "default"

// maxPasswords bounds the passwords of a user, for rotation. All of the
// places are always compared, taken or not.
const maxPasswords = 4

// maxUserName bounds what a connection keeps of its user.
const maxUserName = 128

// User is one user as an operator describes them. The zero value of a limit
// means that there is none.
type User struct {
	Name        string
	Passwords   [][sha256.Size]byte // SHA-256 of each password that is accepted
	Argon2id    []string            // further ones, as HashPassword makes them
	Keys        []string            // globs; a command's key must match one
	Commands    []string            // Categories that may be used
	Denied      []string            // deniable categories that may not be used
	Held        int                 // locks held at once
	Rate        int                 // commands per second, all but those of the login
	Counters    int                 // names of counters used through this daemon
	Connections int                 // connections at once
	MaxHold     time.Duration       // how long one holder keeps a lock
	Disabled    bool
}

// Everything is a user who may do all, with one password.
func Everything(name, password string) User {
	return User{Name: name, Passwords: [][sha256.Size]byte{sha256.Sum256([]byte(password))}, Keys: []string{"*"}, Commands: Categories()}
}

// Users checks passwords and permissions. It is safe for concurrent use. A nil *Users
// has the default user alone, which needs no password and may do everything.
type Users struct {
	decoy    [maxPasswords][sha256.Size]byte // random: compared for an unknown name
	hash     func([]byte) [sha256.Size]byte  // tests count its calls
	Now      func() time.Time
	port     *loginLimit // of clients' connections
	http     *loginLimit // of the admin endpoint
	ledger   ledger
	signedIn signedIn
	argon    *argonChecks
	secret   [sha256.Size]byte // of this process, for digests that stay in memory

	mu     sync.Mutex // orders Replace
	roster atomic.Pointer[roster]
}

// roster are all users at one time.
type roster struct {
	users  map[string]*Rights
	decoys []*argonHash // for names that do not exist
}

// Rights are a User prepared for checks. A nil *Rights may do nothing.
type Rights struct {
	User
	digests [maxPasswords][sha256.Size]byte
	argon   []*argonHash
	keys    []glob.Pattern
	limiter *rate.Limiter // of commands
	account *account      // outlives a reload
}

// everything are the rights of all clients where there are no users.
var everything = &Rights{User: User{Commands: Categories()}, keys: make([]glob.Pattern, 1)} // the zero pattern covers every key

// NewUsers checks the users; the error names user, value and what is allowed.
func NewUsers(list []User) (*Users, error) {
	u := &Users{hash: func(b []byte) [sha256.Size]byte { return sha256.Sum256(b) }, Now: time.Now, port: newLoginLimit(), http: newLoginLimit()}
	u.ledger.owners, u.ledger.accounts = make(map[HeldKey]*account), make(map[string]*account)
	u.signedIn.users = make(map[string]map[*Member]struct{})
	for i := range u.decoy {
		rand.Read(u.decoy[i][:]) // never fails: the runtime ends the process instead
	}
	rand.Read(u.secret[:])
	u.argon = &argonChecks{slots: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/4))}
	return u, u.Replace(list)
}

// Replace puts another list in force, at once and for all connections, or
// leaves everything as it is and returns why.
func (u *Users) Replace(list []User) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	before := u.roster.Load()
	users := make(map[string]*Rights, len(list))
	var errs []error
	for _, given := range list {
		made, err := u.prepare(given)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("user %q %w", given.Name, err))
		case users[given.Name] != nil:
			errs = append(errs, fmt.Errorf("user %q is there twice: leave one out", given.Name))
		}
		if before != nil && before.users[given.Name] != nil {
			former := before.users[given.Name]
			if made.Rate == former.Rate { // another rate begins with all tokens
				made.limiter = former.limiter
			}
		}
		users[given.Name] = made
		if given.Disabled {
			delete(users, given.Name)
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	for name, who := range users {
		who.account = u.ledger.accountOf(name)
	}
	u.ledger.forget(func(name string) bool { return users[name] != nil }, u.Now())
	for m, why := range u.enforce(&roster{users, padArgon(users)}) {
		if m.Expel != nil {
			m.Expel(why)
		}
	}
	return nil
}

// prepare checks one user; the error is the rest of a sentence.
func (u *Users) prepare(given User) (*Rights, error) {
	made := &Rights{User: given, digests: u.decoy, limiter: newLimiter(given.Rate)}
	copy(made.digests[:], given.Passwords)
	passwords := len(given.Passwords) + len(given.Argon2id)
	switch {
	case given.Name == "" || len(given.Name) > maxUserName || !Printable(given.Name):
		return made, fmt.Errorf("has a name that is not 1 to %d visible ASCII characters", maxUserName)
	case passwords == 0 && !given.Disabled:
		return made, errors.New("has no password: give password-argon2id or password-sha256, or enabled = false")
	case passwords > maxPasswords:
		return made, fmt.Errorf("has %d passwords, allowed are 1 to %d", passwords, maxPasswords)
	case min(given.Held, given.Rate, given.Counters, given.Connections) < 0:
		return made, fmt.Errorf("has held = %d, rate = %d, counters = %d and connections = %d, allowed are 0 (no limit) and more", given.Held, given.Rate, given.Counters, given.Connections)
	}
	for i, text := range given.Argon2id {
		h, err := parseArgon(text)
		if err != nil {
			return made, fmt.Errorf("has as entry %d of password-argon2id a text that %w", i+1, err)
		}
		made.argon = append(made.argon, h)
	}
	for _, category := range given.Commands {
		if !slices.Contains(Categories(), category) {
			return made, fmt.Errorf("has the command category %q, allowed are %s", category, strings.Join(Categories(), ", "))
		}
	}
	for _, category := range given.Denied {
		if !slices.Contains(deniable(), category) {
			return made, fmt.Errorf("denies the command category %q, allowed are %s", category, strings.Join(deniable(), ", "))
		}
	}
	for _, pattern := range given.Keys {
		g, err := glob.New(pattern)
		if err != nil {
			return made, fmt.Errorf("has the key pattern %q, which %w", pattern, err)
		}
		made.keys = append(made.keys, g)
	}
	return made, nil
}

// Find is the user of that name, nil if there is none or they are disabled.
func (u *Users) Find(name string) *Rights {
	if u == nil {
		return everything
	}
	return u.roster.Load().users[name]
}

// check reports whether the password is the user's. A name that no user has costs
// what a wrong password costs: one hash, all comparisons, and as many checks of
// Argon2id as a user's. The error is errBusy.
func (u *Users) check(name, password string) (bool, error) {
	all := u.roster.Load()
	who := all.users[name]
	digests, argon := &u.decoy, all.decoys
	if who != nil {
		digests, argon = &who.digests, who.argon
	}
	digest := u.hash([]byte(password))
	same := 0
	for i := range digests {
		same |= subtle.ConstantTimeCompare(digest[:], digests[i][:])
	}
	if same == 1 {
		return who != nil, nil
	}
	fits, err := u.argon.fits(argon, password, sha256.Sum256(append(u.secret[:], password...)))
	return who != nil && fits, err
}

// RefusedLogins counts logins since the start: all that were refused, and those
// of them whose password was not checked. A nil *Users refuses none.
func (u *Users) RefusedLogins() (all, unchecked int64) {
	if u == nil {
		return 0, 0
	}
	unchecked = u.port.refused.Load() + u.http.refused.Load()
	return u.port.wrong.Load() + u.http.wrong.Load() + unchecked, unchecked
}

// May reports whether the user's categories include one.
func (r *Rights) May(category string) bool {
	switch {
	case r == nil:
		return false
	case GrantedToAll(category):
		return !slices.Contains(r.Denied, category)
	}
	return slices.Contains(r.Commands, category)
}

// MayUse reports whether one of the user's patterns covers a name.
func (r *Rights) MayUse(name string) bool {
	if r == nil {
		return false
	}
	for i := range r.keys {
		if r.keys[i].Matches(name) {
			return true
		}
	}
	return false
}

// Printable: visible ASCII only, so that CLIENT INFO can be read back.
func Printable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < '!' || r > '~' })
}

// KeyFilter returns which keys a user may see, as the users are now. It works in any
// goroutine.
func (u *Users) KeyFilter(name string) func(redlock.Key) bool {
	who := u.Find(name)
	return func(key redlock.Key) bool { return who.MayUse(string(key)) }
}
