package configs

// option.go contains option: a name, its line in --help, and functions that decode, check
// and show its value. Load, Validate, Help and the test of the example file all use the
// same list of options (see options.go).

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// option is one option. set and check return problems, none for a valid value; the caller
// adds name, range and source.
type option struct {
	name     string
	argument string // the name of the value in --help, "" for a switch
	help     string // "" = it shares the line of the option before
	allowed  string
	advice   string
	list     bool // the flag may be repeated
	secret   bool // the value may hold a password: never shown as it was given
	set      func(*Config, any) []problem
	check    func(*Config) []problem
	show     func(*Config) string // the present value, passwords hidden
}

// problem is one problem with one value.
type problem struct {
	value  string // what to show; "" = the whole value
	text   string // end of a sentence that starts with the value
	advice string // "" = the option's
}

// fieldError completes a problem to an error for operators. given is the value
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

func durationOption(name, help, advice string, min, max time.Duration, field func(*Config) *time.Duration) option {
	return option{
		name: name, argument: "TIME", help: help,
		allowed: shortDuration(min) + " to " + shortDuration(max),
		advice:  advice + ` (write "100ms" or "60s"; a bare number is milliseconds)`,
		set:     setter(decodeDuration, field),
		show:    func(c *Config) string { return shortDuration(*field(c)) },
		check: func(c *Config) []problem {
			switch d := *field(c); {
			case d < min:
				return []problem{{text: "is too short"}}
			case d > max:
				return []problem{{text: "is too long"}}
			case d%time.Millisecond != 0:
				return []problem{{text: "is not a whole number of milliseconds"}}
			}
			return nil
		},
	}
}

func intOption(name, help, advice string, min, max int, field func(*Config) *int) option {
	return option{
		name: name, argument: "N", help: help, advice: advice,
		allowed: fmt.Sprintf("%d to %d", min, max),
		set:     setter(decodeInt, field),
		show:    func(c *Config) string { return strconv.Itoa(*field(c)) },
		check: func(c *Config) []problem {
			switch n := *field(c); {
			case n < min:
				return []problem{{text: "is too small"}}
			case n > max:
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

// setter stores the result of decode, or returns its error as a problem.
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

// wordPattern matches valid names of groups and masters: they become parts of the
// identity stored on the masters, whose parts are separated by blanks and commas.
var wordPattern = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

const wordAllowed = "1 to 64 of A-Z a-z 0-9 _ . -"

// hasBlank reports whether text holds a space or a control character, which is invisible
// in a log or an error.
func hasBlank(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
}
