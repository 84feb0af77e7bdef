package redlock

import (
	"time"

	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/events"
	"redlockd/redlock/ids"
	"redlockd/redlock/inspect"
	"redlockd/redlock/lease"
	"redlockd/redlock/renew"
	"redlockd/redlock/track"
	"redlockd/redlock/wait"
	"redlockd/redlock/work"
)

// The words of every operation, see package engine.
type (
	Key   = engine.Key
	Token = engine.Token
	Fence = engine.Fence
	Lease = engine.LeaseID
	Batch = engine.Batch
	Trace = engine.Trace
	Vote  = engine.Vote

	Ownership = engine.Ownership
)

// Locks, see package lease.
type (
	Kind           = lease.Kind
	Mode           = lease.Mode
	Grant          = lease.Grant
	UnlockRequest  = lease.UnlockRequest
	ExtendRequest  = lease.ExtendRequest
	LockDone       = lease.LockDone
	UnlockDone     = lease.UnlockDone
	ExtendDone     = lease.ExtendDone
	Requester      = lease.Requester
	Note           = lease.Note
	View           = lease.View
	ViewDone       = lease.ViewDone
	Observation    = lease.Observation
	ObserveDone    = lease.ObserveDone
	ForwardRequest = lease.ForwardRequest
	ForwardDone    = lease.ForwardDone
	Swap           = lease.Swap
	Retake         = lease.Retake
	WriteEffect    = lease.WriteEffect
	WriteRequest   = lease.WriteRequest
	WriteDone      = lease.WriteDone
	HoldTimes      = lease.HoldTimes
	Part           = lease.Part
)

// PartsOf are the parts of a lock over several groups of masters, and GiveBackParts undoes such parts.
func PartsOf(g *Grant) []*Part    { return lease.PartsOf(g) }
func GiveBackParts(parts []*Part) { lease.GiveBackParts(parts) }

// IsUndecided reports whether the masters could not decide now, and may decide later.
func IsUndecided(err error) bool { return wait.IsUndecided(err) }

// Renewals, see package renew.
type (
	HoldTerms = renew.Terms
	Hold      = renew.Hold
)

// Modes of requests; without one a lock is exclusive.
var (
	Looking = lease.Looking
	Readers = lease.Readers
	Valued  = lease.Valued
)

func PermitsOf(limit int) Mode       { return lease.PermitsOf(limit) }
func LevelsOf(owner Token) Mode      { return lease.LevelsOf(owner) }
func PartOf(before Token) Mode       { return lease.PartOf(before) }
func SwapOf(mode Mode) *Swap         { return lease.SwapOf(mode) }
func LimitOf(mode Mode) int          { return lease.LimitOf(mode) }
func HasClientValues(mode Mode) bool { return lease.HasClientValues(mode) }
func LevelOwner(mode Mode) Token     { return lease.LevelOwner(mode) }

// HeldFor is the mode of a request whose hold lasts so long at most; 0 = without an end.
func HeldFor(mode Mode, longest time.Duration) Mode {
	if longest == 0 {
		return mode
	}
	return lease.Limited(mode, lease.HoldLimit{Longest: longest})
}

// Longest returns the longest time of a hold of a request with this mode.
func Longest(mode Mode) time.Duration { return lease.LimitOfHold(mode).Longest }

// Words of locks, see package lease.
const (
	Exclusive     = lease.Exclusive
	Shared        = lease.Shared
	Permits       = lease.Permits
	Endless       = lease.Endless
	WriteDeletes  = lease.WriteDeletes
	WriteExpires  = lease.WriteExpires
	WriteReplaces = lease.WriteReplaces
	WriteLater    = lease.WriteLater
	WriteEarlier  = lease.WriteEarlier
)

// Views of locks, see package inspect.
type (
	Listing      = inspect.Listing
	ListedLock   = inspect.ListedLock
	LockPage     = inspect.LockPage
	LockState    = inspect.LockState
	LockView     = inspect.LockView
	Holder       = inspect.Holder
	LockOnMaster = inspect.LockOnMaster
	ForceRequest = inspect.ForceRequest
)

// CursorBits counts the bits that the cursor of a Listing uses.
const CursorBits = inspect.CursorBits

// States of a lock.
const (
	LockFree      = inspect.LockFree
	LockHeld      = inspect.LockHeld
	LockUndecided = inspect.LockUndecided
	LockForeign   = inspect.LockForeign
)

// Ids, see package ids.
type (
	IDRequest       = ids.Request
	IDDone          = ids.Done
	Counter         = ids.Counter
	CounterOnMaster = ids.CounterOnMaster
	CounterFate     = ids.CounterFate
)

// Fates of a counter on a master.
const (
	CounterDeleted    = ids.CounterDeleted
	CounterAbsent     = ids.CounterAbsent
	CounterChanged    = ids.CounterChanged
	CounterUnanswered = ids.CounterUnanswered
)

// Seen has what a client has seen of a key, see package track.
type Seen = track.Seen

// Waits, see package wait.
type (
	Owner        = wait.Owner
	Waiting      = wait.Waiting
	AwaitRequest = wait.AwaitRequest
	AwaitDone    = wait.AwaitDone
)

// Work, see package work.
type (
	Work           = work.Work
	WorkRequest    = work.Request
	WorkState      = work.State
	WorkCompletion = work.Completion
	WorkEndRequest = work.EndRequest
	WorkEndDone    = work.EndDone
	WorkExtendDone = work.ExtendDone
	WorkView       = work.View
)

// KeepOf returns the time for which the end of an attempt is remembered.
func KeepOf(t Token) time.Duration { return work.KeepOf(t) }

// The four answers to a WorkRequest.
const (
	WorkAcquired  = work.Acquired
	WorkRunning   = work.Running
	WorkDone      = work.Done
	WorkExhausted = work.Exhausted
)

// Events, see package events.
type (
	Event       = events.Event
	EventKind   = events.Kind
	EventCounts = events.Counts[int64]
)

// Kinds of events.
const (
	EventAcquired = events.Acquired
	EventReleased = events.Released
	EventExpired  = events.Expired
	EventLost     = events.Lost
	EventForced   = events.Forced
	EventWanted   = events.Wanted
	EventOverdue  = events.Overdue
)

// Words of a Vote.
const (
	VoteYes       = engine.VoteYes
	VoteNo        = engine.VoteNo
	VoteUncounted = engine.VoteUncounted
)

// OwnerOf is the owner of a level of a reentrant lock, by its token; "" for other tokens.
func OwnerOf(t Token) Token { return engine.OwnerOf(t) }

// NewToken is 160 random bits in 27 characters, safe in URLs and shells. Those of a daemon have a mark of it.
func NewToken() Token { return engine.NewToken() }

// MasterStatus is one master as this daemon sees it, see pool.Status.
type MasterStatus = pool.Status

// Counters count since the start of the daemon.
type Counters struct {
	engine.Counts[int64]
	Held    int       // leases that run now, as far as is known; beyond 1 024 an estimate
	HeldFor HoldTimes // of leases that were released
	// ShortOver counts leases of less than a second that were over before their release.
	ShortOver int64
}

// Add adds what another group of masters has counted.
func (c *Counters) Add(d Counters) {
	engine.AddCounts(&c.Counts, &d.Counts)
	c.Held += d.Held
	c.ShortOver += d.ShortOver
	for i, n := range d.HeldFor.Counts {
		c.HeldFor.Counts[i] += n
	}
	c.HeldFor.Sum += d.HeldFor.Sum
}
