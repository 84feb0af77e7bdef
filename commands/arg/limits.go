// Limits of a lock's name, token, ttl and note. Every limit is checked here, before
// anything is allocated or sent. A refusal states the value that was given and the
// values that are allowed.

package arg

import (
	"fmt"
	"strings"
	"time"

	"redlockd/commands/access"
	"redlockd/redlock"
)

const (
	maxKeyBytes  = 512 // bytes
	maxMetaBytes = 512 // bytes

	// A token shorter than 8 bytes is too easily chosen twice.
	minTokenBytes = 8
	MaxTokenBytes = 512

	// Below 10 ms nothing would be left after a round trip and the drift allowance.
	MinTTL = 10 * time.Millisecond
)

// ParseKey checks the name of a lock, ParseCounter that of a counter and ParseWork
// that of a piece of work: any bytes, NUL and line breaks included.
func ParseKey(s string) (redlock.Key, error)     { return parseName("lock name", s) }
func ParseCounter(s string) (redlock.Key, error) { return parseName("counter name", s) }
func ParseWork(s string) (redlock.Key, error)    { return parseName("name", s) }

func parseName(what, s string) (redlock.Key, error) {
	if len(s) < 1 || len(s) > maxKeyBytes {
		return "", fmt.Errorf("invalid %s: %d bytes, allowed are 1 to %d", what, len(s), maxKeyBytes)
	}
	if strings.HasPrefix(s, access.ReservedPrefix) {
		return "", fmt.Errorf("invalid %s %s: names beginning with '%s' are reserved", what, Quoted(s), access.ReservedPrefix)
	}
	return redlock.Key(s), nil
}

// ParseToken checks a token. Tokens are secrets: the error shows its length only.
func ParseToken(s string) (redlock.Token, error) {
	if len(s) < minTokenBytes || len(s) > MaxTokenBytes {
		return "", fmt.Errorf("invalid token: %d bytes, allowed are %d to %d", len(s), minTokenBytes, MaxTokenBytes)
	}
	return redlock.Token(s), nil
}

// ParseTTL reads milliseconds. They are compared before they become a
// time.Duration, because clients do send 9·10¹⁵ of them.
func ParseTTL(s string, longest time.Duration) (time.Duration, error) {
	ms, ok := ParseCount(s)
	if !ok || ms < MinTTL.Milliseconds() {
		return 0, fmt.Errorf("ttl %s is not an integer or out of range, allowed are %d to %d ms%s",
			Quoted(s), MinTTL.Milliseconds(), longest.Milliseconds(), timeHint(s))
	}
	if ms > longest.Milliseconds() {
		return 0, fmt.Errorf("ttl %s exceeds max-ttl, allowed are %d to %d ms (--max-ttl)",
			Quoted(s), MinTTL.Milliseconds(), longest.Milliseconds())
	}
	return time.Duration(ms) * time.Millisecond, nil
}

// ParseMeta checks the note for people.
func ParseMeta(s string) (string, error) {
	if len(s) > maxMetaBytes {
		return "", fmt.Errorf("invalid META: %d bytes, allowed are 0 to %d", len(s), maxMetaBytes)
	}
	return s, nil
}
