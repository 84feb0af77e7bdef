package preauth

// limits.go contains the limits of a client that is not authenticated. Those of words and
// bytes are Redis 7's and Valkey's, from the fixes of CVE-2021-32675 and CVE-2025-21605. All
// such clients together share one memory limit and a fixed number of turns per second.

import (
	"errors"
	"fmt"
	"time"

	"redlockd/proxy/resp"
)

const (
	maxArgs    = 10       // words of a command
	maxBulk    = 16 << 10 // bytes of a word
	maxCommand = 64 << 10 // bytes of a command or line, and so of one in memory

	MaxOutput        = 1 << 10 // bytes of replies to the commands of one read
	LoginTimeout     = 10 * time.Second
	HandshakeTimeout = 5 * time.Second // several round trips around the world

	// A turn is one read and the replies to its first commands. At this rate a thousand
	// hostile clients took a quarter to two thirds of a core, their connects and
	// disconnects included (measured). Ten thousand honest ones that connect at once are
	// authenticated in three seconds.
	TurnsPerSecond  = 4000
	TurnBurst       = 1000
	CommandsPerTurn = 4
	HandshakeTurns  = 4 // a handshake: its signature and key exchange
)

// errMemory ends a connection whose memory was evicted.
var errMemory = errors.New("unauthenticated clients use too much memory together")

// Limits derives the limits of commands before the login from those after it.
func Limits(l resp.Limits) resp.Limits {
	l.MaxCommand = min(l.MaxCommand, maxCommand)
	l.MaxLine = min(l.MaxLine, maxCommand)
	l.UnauthArgs, l.UnauthBulk = maxArgs, maxBulk
	return l
}

// MemoryFault is the error for a client whose memory was evicted; max is the limit of all.
func MemoryFault(max int) string {
	return fmt.Sprintf("unauthenticated clients hold more than %d bytes of unfinished commands together, and yours was the oldest; "+
		"authenticate with a command of at most %d bytes, or raise unauthenticated-memory", max, smallSize)
}
