package configs

// users.go reads the users file: TOML with a table for each user, read at the start and
// again at every SIGHUP:
//
//	[user.billing]
//	password-argon2id = "$argon2id$…"     # made by redlockd hash-password
//	password-sha256 = "…64 hex digits…"   # or this; each may be an array, 4 in all, for rotation
//	keys = ["invoices:*"]                 # which names; * and ? are wildcards
//	commands = ["lock", "read"]           # lock read id work admin force
//	deny = ["events", "info"]             # what users have without a grant: events info
//	held = 100                            # locks at once, 0 = no limit
//	rate = 50                             # commands per second, 0 = no limit
//	counters = 20                         # names of counters, 0 = no limit
//	connections = 64                      # at once, 0 = no limit
//	enabled = true

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/knadh/koanf/v2"
)

// User is one table of the users file.
type User struct {
	Name        string
	Passwords   [][sha256.Size]byte // SHA-256 of each
	Argon2id    []string            // further ones, in the text form of Argon2
	Keys        []string
	Commands    []string
	Denied      []string
	Held        int
	Rate        int
	Counters    int
	Connections int
	Disabled    bool
}

// userFields are the settings of a user.
var userFields = map[string]func(*User, any) error{
	"password-sha256":   setDigests,
	"password-argon2id": func(u *User, value any) (err error) { u.Argon2id, err = decodeList(value); return err },
	"keys":              func(u *User, value any) (err error) { u.Keys, err = decodeList(value); return err },
	"commands":          func(u *User, value any) (err error) { u.Commands, err = decodeList(value); return err },
	"deny":              func(u *User, value any) (err error) { u.Denied, err = decodeList(value); return err },
	"held":              func(u *User, value any) error { return setQuota(&u.Held, value, maxQuota) },
	"rate":              func(u *User, value any) error { return setQuota(&u.Rate, value, maxQuota) },
	"counters":          func(u *User, value any) error { return setQuota(&u.Counters, value, maxCounters) },
	"connections":       func(u *User, value any) error { return setQuota(&u.Connections, value, maxQuota) },
	"enabled": func(u *User, value any) error {
		enabled, err := decodeBool(value)
		u.Disabled = !enabled
		return err
	},
}

// ReadUsers reads a users file. The errors are joined FieldErrors, each with the
// user and the setting; a digest is never shown.
func ReadUsers(path string) ([]User, error) {
	users, problems := readUsers(path)
	return users, join(problems)
}

func readUsers(path string) ([]User, []*FieldError) {
	values := koanf.New("\x00") // no name holds it: keys with dots stay one key
	if e := loadFile(values, path); e != nil {
		e.Field, e.Value, e.Advice = "users", strconv.Quote(path), "name a readable one, configs/users.toml is an example"
		return nil, []*FieldError{e}
	}
	var problems []*FieldError
	object := func(field, problem, advice string) {
		problems = append(problems, &FieldError{Field: field, Source: path, Problem: problem, Advice: advice})
	}
	var users []User
	for key, value := range values.Raw() {
		tables, ok := value.(map[string]any)
		if key != "user" || !ok {
			object(shownName(key), "is not a table of users", "write [user.NAME] before the settings of a user")
			continue
		}
		for name, table := range tables {
			settings, ok := table.(map[string]any)
			if !ok {
				object("user."+shownName(name), "is "+kindOf(table)+" and not a table", "write [user.NAME] before the settings of a user")
				continue
			}
			users = append(users, readUser(name, settings, object))
		}
	}
	if len(problems) == 0 && len(users) == 0 {
		object("users", "holds no user, so no client could authenticate", "write [user.NAME] before the settings of a user")
	}
	slices.SortFunc(users, func(a, b User) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(problems, func(a, b *FieldError) int { return strings.Compare(a.Field, b.Field) })
	return users, problems
}

func readUser(name string, settings map[string]any, object func(field, problem, advice string)) User {
	user := User{Name: name}
	for field, value := range settings {
		full := "user." + shownName(name) + "." + shownName(field)
		set, known := userFields[field]
		if !known {
			var names []string
			for name := range userFields {
				names = append(names, name)
			}
			slices.Sort(names)
			object(full, "is no setting of a user", "the nearest one is "+nearest(field, names))
			continue
		}
		if err := set(&user, value); err != nil {
			object(full, err.Error(), "see configs/users.toml")
		}
	}
	return user
}

// setDigests reads one digest or an array of them.
func setDigests(u *User, value any) error {
	list, err := decodeList(value)
	if err != nil {
		return err
	}
	for i, text := range list {
		digest, err := hex.DecodeString(text)
		if err != nil || len(digest) != sha256.Size {
			return fmt.Errorf("holds as entry %d no SHA-256 of 64 hex digits (make one: printf %%s PASSWORD | sha256sum)", i+1)
		}
		u.Passwords = append(u.Passwords, [sha256.Size]byte(digest))
	}
	return nil
}

// maxQuota is more than any daemon can hold or serve.
const maxQuota = 10_000_000

// maxCounters bounds the memory of a user's quota: every name of a counter is stored.
const maxCounters = 100_000

func setQuota(field *int, value any, most int) error {
	n, err := decodeInt(value)
	if err != nil {
		return err
	}
	if n < 0 || n > most {
		return errors.New("is not a number from 0 (no limit) to " + strconv.Itoa(most))
	}
	*field = n
	return nil
}
