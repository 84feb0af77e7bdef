package configs

// users.go reads the users file: TOML with a table for each user (see configs/users.toml),
// read at the start and again at every SIGHUP.

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

const (
	maxQuota    = 10_000_000 // more than any daemon can hold or serve
	maxCounters = 100_000    // bounds the memory of a quota: every name of a counter is stored
)

// entryEnd separates the entries of an array: patterns of keys may hold anything else.
const entryEnd = "\x00"

func userSettings(u *User) map[string]value {
	return map[string]value{
		"password-sha256":   digests(&u.Passwords),
		"password-argon2id": entries(&u.Argon2id),
		"keys":              entries(&u.Keys),
		"commands":          entries(&u.Commands),
		"deny":              entries(&u.Denied),
		"held":              quota(&u.Held, maxQuota),
		"rate":              quota(&u.Rate, maxQuota),
		"counters":          quota(&u.Counters, maxCounters),
		"connections":       quota(&u.Connections, maxQuota),
		"max-hold":          holdTime(&u.MaxHold),
		"enabled":           disabled(&u.Disabled),
	}
}

// entries may be digests of passwords, and none is shown.
func entries(field *[]string) value { return list(field, "", entryEnd, "", splitEntries).hidden() }

func splitEntries(text string) []string {
	if text == "" {
		return []string{}
	}
	return strings.Split(text, entryEnd)
}

func digests(field *[][sha256.Size]byte) value {
	v := entries(new([]string))
	v.set = func(text string) error {
		for i, text := range splitEntries(text) {
			digest, err := hex.DecodeString(text)
			if err != nil || len(digest) != sha256.Size {
				return fmt.Errorf("holds as entry %d no SHA-256 of 64 hex digits (make one: printf %%s PASSWORD | sha256sum)", i+1)
			}
			*field = append(*field, [sha256.Size]byte(digest))
		}
		return nil
	}
	return v
}

func quota(field *int, max int) value {
	return integer(field, 0, max).allows("").checked(func(*Config) error {
		return refuse(*field < 0 || *field > max, fmt.Sprintf("is not a number from 0 (no limit) to %d", max))
	})
}

func disabled(field *bool) value {
	v := truth(field)
	v.set = func(text string) error {
		enabled, err := parseTruth(text)
		*field = !enabled
		return err
	}
	return v
}

// ReadUsers reads a users file. The errors are joined FieldErrors, each with the
// user and the setting; a digest is never shown.
func ReadUsers(path string) ([]User, error) {
	users, problems := readUsers(path)
	return users, errors.Join(problems...)
}

func readUsers(path string) (users []User, problems []error) {
	values, lines, err := readTOML(path)
	if err != nil {
		return nil, []error{&FieldError{Field: "users", Value: strconv.Quote(path), Problem: err.Error(),
			Allowed: tomlAllowed, Advice: "name a readable one, configs/users.toml is an example"}}
	}
	report := func(field, key, problem string) {
		problems = append(problems, &FieldError{Field: field, Source: path, Line: lines[key], Problem: problem,
			Advice: "write [user.NAME] before the settings of a user"})
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		tables, ok := values[key].(map[string]any)
		if key != "user" || !ok {
			report(shownName(key), key, "is not a table of users")
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(tables)) {
			settings, ok := tables[name].(map[string]any)
			if !ok {
				report("user."+shownName(name), "user."+name, "is "+kindOf(tables[name])+" and not a table")
				continue
			}
			user, wrong := readUser(name, settings, given{source: path}, lines)
			users, problems = append(users, user), append(problems, wrong...)
		}
	}
	if len(problems) == 0 && len(users) == 0 {
		report("users", "", "holds no user, so no client could authenticate")
	}
	return users, problems
}

func readUser(name string, native map[string]any, from given, lines map[string]int) (user User, problems []error) {
	user.Name = name
	settings := userSettings(&user)
	for _, key := range slices.Sorted(maps.Keys(native)) {
		o := option{name: "user." + shownName(name) + "." + shownName(key), advice: "see configs/users.toml", value: settings[key]}
		from.line = lines["user."+name+"."+key]
		text, err := o.fromTOML(native[key])
		array, _ := native[key].([]any)
		empty := text == "" && (array == nil || len(array) > 0) // an empty array is a list without entries
		if o.set == nil {
			o.secret = true // it may be a misspelt password
			err = refuse(true, "is no setting of a user", "the nearest one is "+Nearest(key, slices.Sorted(maps.Keys(settings))))
		} else if err == nil {
			err = cmp.Or(refuse(empty, "is empty", "give a value or leave it out"), o.set(text), o.check(nil))
		}
		problems = append(problems, o.explain(err, fmt.Sprint(native[key]), from)...)
	}
	return user, problems
}

// usersFile reads the file at once, so that a daemon with a users file that cannot be used
// does not start.
func usersFile(c *Config) value {
	v := text(&c.UsersFile, "FILE", tomlAllowed)
	v.set = func(path string) error {
		users, problems := readUsers(path)
		c.UsersFile, c.Users = path, users
		for i, err := range problems {
			e := *err.(*FieldError)
			if e.Field != "users" {
				e.Problem = e.Field + " " + e.Problem
			}
			if e.Value = strconv.Quote(path); e.Line > 0 {
				e.Value += fmt.Sprintf(" line %d", e.Line)
			}
			problems[i] = &e
		}
		return errors.Join(problems...)
	}
	return v.checked(func(c *Config) error {
		named := slices.ContainsFunc(c.Users, func(u User) bool { return u.Name == "default" })
		return refuse(named && c.RequirePass != "", "has a user default, and requirepass gives that user a password, too", "leave one out")
	})
}
