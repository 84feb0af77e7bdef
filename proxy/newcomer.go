package proxy

// newcomer.go answers: how much may a client have of us that needs to sign in
// and has not? Little, and not for long: whoever reaches the port is one. The
// numbers of words and bytes are those of Redis 7 and Valkey, from the remedies
// of CVE-2021-32675 and CVE-2025-21605.

import (
	"errors"
	"time"
)

const (
	newcomerArgs    = 10       // words of a command
	newcomerBulk    = 16 << 10 // bytes of a word
	newcomerCommand = 64 << 10 // bytes of a command, and so of what is kept of one
	newcomerOutput  = 1 << 10  // bytes of answers to what was read at once
	loginTimeout    = 10 * time.Second
)

// errUnheard ends a newcomer that asks much without listening.
var errUnheard = errors.New("more answers are due than a client gets that has not signed in")

const (
	tooManyNewcomerArgs = "Protocol error: unauthenticated multibulk length"
	tooLongNewcomerBulk = "Protocol error: unauthenticated bulk length"
)

// newcomers derives what holds before the login.
func (o Options) newcomers() *Options {
	o.unknown = true
	o.MaxCommand = min(o.MaxCommand, newcomerCommand)
	return &o
}

// newcomerLine says why an inline command is too much, "" if it is not.
func newcomerLine(args []string) string {
	if len(args) > newcomerArgs {
		return tooManyNewcomerArgs
	}
	for _, arg := range args {
		if len(arg) > newcomerBulk {
			return tooLongNewcomerBulk
		}
	}
	return ""
}
