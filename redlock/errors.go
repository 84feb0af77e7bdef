package redlock

import (
	"redlockd/redlock/engine"
	"redlockd/redlock/ids"
	"redlockd/redlock/inspect"
	"redlockd/redlock/lease"
	"redlockd/redlock/renew"
	"redlockd/redlock/wait"
	"redlockd/redlock/work"
)

// The errors of every operation, see package engine.
var (
	ErrHeld      = engine.ErrHeld
	ErrNotHeld   = engine.ErrNotHeld
	ErrWrongType = engine.ErrWrongType
	ErrNoValue   = engine.ErrNoValue
	ErrShutdown  = engine.ErrShutdown
)

type (
	NoQuorum = engine.NoQuorum
	Expired  = engine.Expired
	Busy     = engine.Busy
	// Moving means that the key's slot is on its way to another group of masters.
	Moving = engine.Moving
)

var (
	ErrBadToken  = work.ErrBadToken
	ErrBadCursor = inspect.ErrBadCursor
	ErrLeft      = wait.ErrLeft
)

// OtherLimit means that most masters hold the key for another number of permits.
type OtherLimit = lease.OtherLimit

// Deadlock means that a wait would have closed a cycle of waits.
type Deadlock = wait.Deadlock

// Reasons of a lost hold, see package renew.
var (
	ErrLostHeld    = renew.ErrLostHeld
	ErrLostExpired = renew.ErrLostExpired
	ErrLostMax     = renew.ErrLostMax
	ErrLostOverdue = renew.ErrLostOverdue
	ErrLostForced  = renew.ErrLostForced
)

// The errors of ids, see package ids.
type (
	NotDurable   = ids.NotDurable
	LostState    = ids.LostState
	Exhausted    = ids.Exhausted
	BelowKnown   = ids.BelowKnown
	NotConfirmed = ids.NotConfirmed
	InUse        = ids.InUse
)
