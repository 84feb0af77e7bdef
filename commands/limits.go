// Limits of a lock's name, token, ttl and note. Every limit is checked here, before
// anything is allocated or sent. A refusal states the value that was given and the
// values that are allowed.

package commands

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
	maxTokenBytes = 512

	// Below 10 ms nothing would be left after a round trip and the drift allowance.
	minTTL = 10 * time.Millisecond
)

// parseKey checks the name of a lock, parseCounter that of a counter and parseWork
// that of a piece of work: any bytes, NUL and line breaks included.
func parseKey(s string) (redlock.Key, error)     { return parseName("lock name", s) }
func parseCounter(s string) (redlock.Key, error) { return parseName("counter name", s) }
func parseWork(s string) (redlock.Key, error)    { return parseName("name", s) }

func parseName(what, s string) (redlock.Key, error) {
	if len(s) < 1 || len(s) > maxKeyBytes {
		return "", fmt.Errorf("invalid %s: %d bytes, allowed are 1 to %d", what, len(s), maxKeyBytes)
	}
	if strings.HasPrefix(s, access.ReservedPrefix) {
		return "", fmt.Errorf("invalid %s %s: names beginning with '%s' are reserved", what, quoted(s), access.ReservedPrefix)
	}
	return redlock.Key(s), nil
}

// parseToken checks a token. Tokens are secrets: the error shows its length only.
func parseToken(s string) (redlock.Token, error) {
	if len(s) < minTokenBytes || len(s) > maxTokenBytes {
		return "", fmt.Errorf("invalid token: %d bytes, allowed are %d to %d", len(s), minTokenBytes, maxTokenBytes)
	}
	return redlock.Token(s), nil
}

// parseTTL reads milliseconds. They are compared before they become a
// time.Duration, because clients do send 9·10¹⁵ of them.
func parseTTL(s string, longest time.Duration) (time.Duration, error) {
	ms, ok := parseCount(s)
	if !ok || ms < minTTL.Milliseconds() {
		return 0, fmt.Errorf("ttl %s is not an integer or out of range, allowed are %d to %d ms",
			quoted(s), minTTL.Milliseconds(), longest.Milliseconds())
	}
	if ms > longest.Milliseconds() {
		return 0, fmt.Errorf("ttl %s exceeds max-ttl, allowed are %d to %d ms (--max-ttl)",
			quoted(s), minTTL.Milliseconds(), longest.Milliseconds())
	}
	return time.Duration(ms) * time.Millisecond, nil
}

// parseMeta checks the note for people.
func parseMeta(s string) (string, error) {
	if len(s) > maxMetaBytes {
		return "", fmt.Errorf("invalid META: %d bytes, allowed are 0 to %d", len(s), maxMetaBytes)
	}
	return s, nil
}
