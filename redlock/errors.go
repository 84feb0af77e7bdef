package redlock

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Refused (no), failed (don't know) and not asked are three outcomes and stay
// three from here to the socket: the first two errors are a quorum's "no", the
// types below mean that the question was not decided.
var (
	// ErrHeld: a quorum refused, somebody else holds the key. The reply is nil.
	ErrHeld = errors.New("held by another token")
	// ErrNotHeld: a quorum no longer knows this token for this key. The reply is nil.
	ErrNotHeld = errors.New("not held by this token")
	// ErrWrongType: most masters keep something at this key that is not a lock; it was left untouched.
	ErrWrongType = errors.New("the key holds something that is not a lock; it was left untouched")
	// ErrShutdown: the daemon is draining; nothing was done.
	ErrShutdown = errors.New("the daemon is shutting down; nothing was done, use another daemon")
)

// NoQuorum means that fewer than a quorum of masters gave an answer that
// counts, so the outcome is unknown; what was taken is being given back.
type NoQuorum struct {
	Answered, Needed, Total int
	Missing                 []string // one phrase per missing master: "b=10.0.0.2:6379 down (connection refused)"
	Note                    string   // what this means for the caller, "" for the usual
}

func (e *NoQuorum) Error() string {
	text := fmt.Sprintf("%d of %d masters answered, %d needed", e.Answered, e.Total, e.Needed)
	if len(e.Missing) > 0 {
		text += ": " + strings.Join(e.Missing, ", ")
	}
	if e.Note != "" {
		text += "; " + e.Note
	}
	return text
}

// Expired means that a quorum said yes, but so late that no validity was left;
// what was taken is being given back.
type Expired struct {
	Elapsed, TTL time.Duration
}

func (e *Expired) Error() string {
	return fmt.Sprintf("the quorum answered after %d ms, which leaves nothing of a ttl of %d ms; what was taken is given back, use a longer ttl",
		e.Elapsed.Milliseconds(), e.TTL.Milliseconds())
}

// Busy means that a limit of the daemon is reached; nothing was done.
type Busy struct {
	What   string // "operations in flight"
	Limit  int
	Option string // "--max-operations"
}

func (e *Busy) Error() string {
	return fmt.Sprintf("%s: limit %d reached (%s); nothing was done, try later", e.What, e.Limit, e.Option)
}
