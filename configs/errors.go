package configs

// errors.go contains the errors for invalid settings.

import (
	"errors"
	"strings"
)

var (
	// ErrHelp: Load found --help; print Help() and exit with 0.
	ErrHelp = errors.New("help was requested")
	// ErrVersion: Load found --version; print the version and exit with 0.
	ErrVersion = errors.New("the version was requested")
	// ErrInvalid is wrapped by every other error of Load and by every error of
	// Validate: nothing was started, the settings have to be changed.
	ErrInvalid = errors.New("invalid settings")
)

// FieldError is one invalid setting. Load and Validate join all of them. No part of it
// ever holds a password.
type FieldError struct {
	Field   string // name of the option, without dashes
	Value   string // as it was given, passwords hidden
	Source  string // "--max-ttl", "REDLOCKD_MAX_TTL", the file's path; "" when unknown
	Problem string // what is wrong with the value
	Allowed string // the range
	Advice  string // what to do
}

func (e *FieldError) Error() string {
	var text strings.Builder
	text.WriteString(e.Field)
	if e.Value != "" {
		text.WriteString(" = " + e.Value)
	}
	if e.Source != "" {
		text.WriteString(" (from " + e.Source + ")")
	}
	text.WriteString(": " + e.Problem)
	if e.Allowed != "" {
		text.WriteString("; allowed: " + e.Allowed)
	}
	if e.Advice != "" {
		text.WriteString("; " + e.Advice)
	}
	return text.String()
}

// Unwrap makes every FieldError an ErrInvalid.
func (e *FieldError) Unwrap() error { return ErrInvalid }

// join is errors.Join for field errors; nil when there are none.
func join(fields []*FieldError) error {
	joined := make([]error, len(fields))
	for i, field := range fields {
		joined[i] = field
	}
	return errors.Join(joined...)
}
