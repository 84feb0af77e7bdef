// What is an option? A row that knows its name, its line in --help, how to
// read its value, how to show it and what to object to. Load, Validate, Help
// and the test of the example file all walk the same rows (see options.go).
package configs

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// option is one row. set and check return what is wrong, nothing when all is
// well; the caller adds name, range and source.
type option struct {
	name     string
	argument string // how --help calls the value, "" for a switch
	help     string // "" = it stands on the line of the one before
	allowed  string
	advice   string
	list     bool // the flag may be repeated
	secret   bool // the value may hold a password: never shown as it was given
	set      func(*Config, any) []problem
	check    func(*Config) []problem
	show     func(*Config) string // the value in force, passwords blotted out
}

// problem is one objection to one value.
type problem struct {
	value  string // what to show; "" = the whole value
	text   string // end of a sentence that starts with the value
	advice string // "" = the row's
}

// fieldError completes a problem to what an operator reads. given is the value
// as it was found in source.
func (o *option) fieldError(p problem, given, source string) *FieldError {
	e := &FieldError{Field: o.name, Value: p.value, Source: source, Problem: p.text, Allowed: o.allowed, Advice: p.advice}
	if e.Value == "" && !o.secret {
		e.Value = given
	}
	if e.Advice == "" {
		e.Advice = o.advice
	}
	return e
}

func durationOption(name, help, advice string, least, most time.Duration, field func(*Config) *time.Duration) option {
	return option{
		name: name, argument: "TIME", help: help,
		allowed: shortDuration(least) + " to " + shortDuration(most),
		advice:  advice + ` (write "100ms" or "60s"; a bare number is milliseconds)`,
		set:     setter(decodeDuration, field),
		show:    func(c *Config) string { return shortDuration(*field(c)) },
		check: func(c *Config) []problem {
			switch d := *field(c); {
			case d < least:
				return []problem{{text: "is too short"}}
			case d > most:
				return []problem{{text: "is too long"}}
			case d%time.Millisecond != 0:
				return []problem{{text: "is not a whole number of milliseconds"}}
			}
			return nil
		},
	}
}

func intOption(name, help, advice string, least, most int, field func(*Config) *int) option {
	return option{
		name: name, argument: "N", help: help, advice: advice,
		allowed: fmt.Sprintf("%d to %d", least, most),
		set:     setter(decodeInt, field),
		show:    func(c *Config) string { return strconv.Itoa(*field(c)) },
		check: func(c *Config) []problem {
			switch n := *field(c); {
			case n < least:
				return []problem{{text: "is too small"}}
			case n > most:
				return []problem{{text: "is too large"}}
			}
			return nil
		},
	}
}

func choiceOption(name, help, advice string, words []string, field func(*Config) *string) option {
	return option{
		name: name, argument: strings.Join(words, "|"), help: help, advice: advice,
		allowed: strings.Join(words, ", "),
		set:     setter(decodeText, field),
		show:    func(c *Config) string { return *field(c) },
		check: func(c *Config) []problem {
			if slices.Contains(words, *field(c)) {
				return nil
			}
			return []problem{{text: "is none of its words"}}
		},
	}
}

func switchOption(name, help string, field func(*Config) *bool) option {
	return option{
		name: name, help: help, allowed: "true, false", advice: "write --" + name + " or --" + name + "=false",
		set:   setter(decodeBool, field),
		show:  func(c *Config) string { return strconv.FormatBool(*field(c)) },
		check: func(*Config) []problem { return nil },
	}
}

// setter stores what decode makes of a value, or says why it is none.
func setter[T any](decode func(any) (T, error), field func(*Config) *T) func(*Config, any) []problem {
	return func(c *Config, value any) []problem {
		decoded, err := decode(value)
		if err != nil {
			return []problem{{text: err.Error()}}
		}
		*field(c) = decoded
		return nil
	}
}

// wordPattern is what a group and the name of a master are made of: they
// become parts of the identity kept on the masters, whose parts are separated
// by blanks and commas.
var wordPattern = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

const wordAllowed = "1 to 64 of A-Z a-z 0-9 _ . -"

// hasBlank tells whether text holds a space or a control character, which
// nobody sees in a log or an error.
func hasBlank(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
}
