package configs

// errors.go contains the errors for invalid settings. It finds the name nearest to a misspelt
// one, and hides passwords, also in entries that could not be parsed.

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
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
	Line    int    // of the file; 0 when unknown
	Problem string // what is wrong: the end of a sentence that begins with the value
	Allowed string // the range
	Advice  string // what to do
}

func (e *FieldError) Error() string {
	part := func(before, text, after string) string {
		if text == "" {
			return ""
		}
		return before + text + after
	}
	source := e.Source
	if e.Line > 0 {
		source += fmt.Sprintf(", line %d", e.Line)
	}
	return e.Field + part(" = ", e.Value, "") + part(" (from ", source, ")") + ": " + e.Problem + part("; allowed: ", e.Allowed, "") + part("; ", e.Advice, "")
}

// Unwrap makes every FieldError an ErrInvalid.
func (e *FieldError) Unwrap() error { return ErrInvalid }

// refuse returns the problem if the value is wrong. An advice replaces that of the option.
func refuse(wrong bool, problem string, advice ...string) error {
	switch {
	case !wrong:
		return nil
	case len(advice) == 0:
		return errors.New(problem)
	}
	return &FieldError{Problem: problem, Advice: advice[0]}
}

// about names the part of an option's value that has the problem.
func about(part string, err error) error {
	if err == nil {
		return nil
	}
	e := fieldError(err)
	e.Value = part
	return &e
}

func fieldError(err error) FieldError {
	if e, ok := err.(*FieldError); ok {
		return *e
	}
	return FieldError{Problem: err.Error()}
}

func errorsOf(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return []error{err}
}

// wordPattern matches valid names of groups and masters: they become parts of the
// identity stored on the masters, whose parts are separated by blanks and commas.
var wordPattern = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

const wordAllowed = "1 to 64 of A-Z a-z 0-9 _ . -"

// maxCompared bounds the work for an arbitrary name.
const maxCompared = 64

// Nearest returns the known name with the fewest edits from a misspelt one, the first one of equals.
func Nearest(name string, known []string) string {
	name = name[:min(len(name), maxCompared)]
	return slices.MinFunc(known, func(a, b string) int { return distance(name, a) - distance(name, b) })
}

// shownName makes an unknown name fit for an error: a mistake in quoting can put a
// master with its password in the place of a name.
func shownName(name string) string {
	if wordPattern.MatchString(name) {
		return name
	}
	return strconv.Quote(redactEntry(name))
}

// distance is Levenshtein's: insertions, deletions and replacements of bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1) // the distances of a's beginning from the beginnings of b
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		cost := i
		row[0] = i + 1
		for j := range len(b) {
			if a[i] != b[j] {
				cost++
			}
			cost, row[j+1] = row[j+1], min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

var (
	// headPattern is the part in front of a login; a word that is no known
	// scheme may be a piece of a password.
	headPattern = regexp.MustCompile(`^([A-Za-z0-9_.-]{1,64}=)?(redis|rediss|valkey|valkeys|redis\+[a-z]{1,8}|unix|tcp|tls|http|https)://`)
	// plainPattern is a host, a port in digits and a database: no login.
	plainPattern = regexp.MustCompile(`^(\[[0-9A-Za-z:.%]*\]|[A-Za-z0-9_.-]*)(:[0-9]*)?(/[0-9]*)?$`)
)

// redactEntry makes an entry that could not be parsed fit for an error: every part that
// may belong to a login becomes three asterisks.
func redactEntry(entry string) string {
	head := headPattern.FindString(entry)
	rest := entry[len(head):]
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		return head + "***@" + rest[at+1:]
	}
	if head == "" && !strings.Contains(rest, "://") || plainPattern.MatchString(rest) {
		return entry
	}
	return head + "***"
}
