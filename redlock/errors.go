package redlock

import (
	"errors"
	"strings"

	"redlockd/redlock/engine"
	"redlockd/redlock/ids"
	"redlockd/redlock/inspect"
	"redlockd/redlock/lease"
	"redlockd/redlock/work"
)

// The errors of every operation, see package engine.
var (
	ErrHeld      = engine.ErrHeld
	ErrNotHeld   = engine.ErrNotHeld
	ErrWrongType = engine.ErrWrongType
	ErrShutdown  = engine.ErrShutdown
)

type (
	NoQuorum = engine.NoQuorum
	Expired  = engine.Expired
	Busy     = engine.Busy
)

var (
	ErrBadToken  = work.ErrBadToken
	ErrBadCursor = inspect.ErrBadCursor
	// ErrLeft: the client left while it waited; nothing reads this answer.
	ErrLeft = errors.New("the client has left")
)

// OtherLimit means that most masters hold the key for another number of permits.
type OtherLimit = lease.OtherLimit

// Deadlock means that a wait would have closed a cycle of connections that wait for one
// another; nothing was done.
type Deadlock struct {
	Keys []Key // of the cycle, beginning with the one that this wait needs
}

func (e *Deadlock) Error() string {
	keys := make([]string, len(e.Keys))
	for i, key := range e.Keys {
		keys[i] = "'" + string(key) + "'"
	}
	return "this wait would never end: connections of this daemon already wait for one another over " +
		strings.Join(keys, " -> ") + "; release what this connection holds, or take the keys in one order everywhere"
}

// The errors of ids, see package ids.
type (
	NotDurable   = ids.NotDurable
	LostState    = ids.LostState
	Exhausted    = ids.Exhausted
	BelowKnown   = ids.BelowKnown
	NotConfirmed = ids.NotConfirmed
	InUse        = ids.InUse
)
