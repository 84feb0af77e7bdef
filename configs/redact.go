package configs

// redact.go hides passwords, also in entries that could not be parsed.

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

var (
	// headPattern is the part in front of a login; a word that is no known
	// scheme may be a piece of a password.
	headPattern = regexp.MustCompile(`^([A-Za-z0-9_.-]{1,64}=)?(redis|rediss|valkey|valkeys|redis\+[a-z]{1,8}|unix|tcp|tls|http|https)://`)
	// plainPattern is a host, a port in digits and a database: no login.
	plainPattern = regexp.MustCompile(`^(\[[0-9A-Za-z:.%]*\]|[A-Za-z0-9_.-]*)(:[0-9]*)?(/[0-9]*)?$`)
)

// Secret is a password. However it is printed, logged or marshalled, the output only shows
// whether there is one.
type Secret string

// String is "***", or "" where there is none.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return "***"
}

// Format prints String for every verb.
func (s Secret) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, s.String()) }

// MarshalText returns String, for encoding/json and slog.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

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

// RedactArgs copies a command line, with three asterisks in place of the value of
// every option that may hold a password.
func RedactArgs(args []string) []string {
	secret := make(map[string]bool)
	for _, o := range options(new(Config)) {
		secret["--"+o.name] = o.secret
	}
	shown := slices.Clone(args)
	for i, arg := range args {
		if name, _, joined := strings.Cut(arg, "="); secret[name] && joined {
			shown[i] = name + "=***"
		} else if i > 0 && secret[args[i-1]] {
			shown[i] = "***"
		}
	}
	return shown
}
