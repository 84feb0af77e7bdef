package redlock

import (
	"time"

	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/events"
	"redlockd/redlock/ids"
	"redlockd/redlock/quorum"
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
	EventCounts = events.Counts
)

// Kinds of events.
const (
	EventAcquired = events.Acquired
	EventReleased = events.Released
	EventExpired  = events.Expired
	EventLost     = events.Lost
	EventForced   = events.Forced
)

// Words of a Vote.
const (
	VoteYes       = engine.VoteYes
	VoteNo        = engine.VoteNo
	VoteUncounted = engine.VoteUncounted
)

// NewToken is 160 random bits in 27 characters, safe in URLs and shells.
func NewToken() Token { return engine.NewToken() }

// Mode is how many clients may hold a key at a time, and which of them together.
type Mode uint8

const (
	Exclusive Mode = iota // one holder
	Shared                // readers together, or one exclusive holder
	Permits               // at most Limit holders
)

// LockRequest requests a lock.
type LockRequest struct {
	DB    int           // logical database, 0 … Options.Databases−1
	Key   Key           // 1–512 bytes, validated by the caller
	TTL   time.Duration // 10 ms … MaxTTL, validated by the caller
	Token Token         // "" = generate 160 random bits (27 characters)
	Meta  string        // free text for people, at most 512 bytes

	Mode Mode
	Fair bool // first come, first served, over all daemons
	// Valued: a client of plain SET NX chose Token as the value. To such a client an equal
	// value that is already there belongs to another holder.
	Valued   bool
	peekOnly bool  // waits for a free key without taking it, see AwaitFree
	Limit    int   // of Permits: 1 … 1024, the same for all users of the key
	More     []Key // further keys, different from Key and from one another: all of them or none

	Wait      time.Duration // of Locker.Wait: how long at most
	Owner     Owner         // the connection that will hold the lock, for the detection of deadlock cycles; nil = unknown
	Requester *Requester    // the client that makes the request, for people; nil = unknown

	ticket *ticket // its place in the queue, of FAIR with Wait

	Hold *HoldTerms // renew the lease, see Hold; nil = do not

	// Script takes the lock with a library's own script, with Token as its token. The script's
	// own answers are noted in Answers.
	Script  *Script
	Answers *ScriptAnswers
}

// HoldTerms are how long a lease is renewed, and the function that reports its end.
type HoldTerms struct {
	MaxTime time.Duration // since the granted ballot began; 0 = without an end
	// OnEnd is called once, from any goroutine: with nil when the lease was released, else with
	// the reason for its loss. What was left of the lease is being given back.
	OnEnd func(g Grant, reason error)

	// wrote is the latest end written on each master, ms of its clock. A lane writes only its
	// own entry. What a lost lease gives back ends by then.
	wrote [quorum.MaxMasters]int64
}

// Grant is a lock that a quorum of masters gave.
type Grant struct {
	Key   Key
	More  []Key // further keys, of a request for several
	Token Token
	Fence Fence
	// Fresh is false when some master already held this token: the lease
	// existed before, and an undeliverable reply must not take it back.
	Fresh bool
	Hold  *Hold // its renewal; nil unless requested

	// ballot made the grant. It is set if the caller chose the token and may be using it
	// through another daemon: only what the ballot made is ever given back without a request.
	ballot *lockBallot

	db    int
	mode  Mode
	until time.Duration // on the pool's clock
	ttl   time.Duration
	start time.Duration // before the first command was queued
	clock pool.Clock
}

// Keys are all keys of the grant, DB is their database.
func (g *Grant) Keys() []Key { return append([]Key{g.Key}, g.More...) }
func (g *Grant) DB() int     { return g.db }

// TokenOf is the token of the i-th of Keys.
func (g *Grant) TokenOf(i int) Token {
	if g.ballot == nil {
		return g.Token
	}
	return g.ballot.call.request.tokenOf(i, g.Token)
}

// Validity is what is left for the caller now; ≤ 0 means it is used up.
func (g *Grant) Validity() time.Duration { return g.until - g.clock.Now() }

// Left is Validity by a cheaper clock: never less, and more only by the time for which the
// machine was suspended since the last flush. It is for bookkeeping, never for a reply to a
// caller.
func (g *Grant) Left() time.Duration { return g.until - pool.RecentNow(g.clock) }

// ExpiredError is the error for a grant whose validity is used up before the grant could be
// handed over.
func (g *Grant) ExpiredError() error { return &Expired{Elapsed: g.clock.Now() - g.start, TTL: g.ttl} }

// UnlockRequest gives a lock back.
type UnlockRequest struct {
	DB    int
	Key   Key
	Token Token
	Trace *Trace // receives the votes; nil = not traced
}

// ExtendRequest makes a held lock last at least TTL from now.
type ExtendRequest struct {
	DB    int
	Key   Key
	More  []Key // further keys: all of them are extended or none
	Token Token
	TTL   time.Duration
	Trace *Trace // receives the votes; nil = not traced

	// wrote is the latest end sent to each master, ms of its clock. It is for callers that must
	// not delete what ends later; otherwise nil. A lane writes only its own entry.
	wrote *[quorum.MaxMasters]int64
}

// Completions are called exactly once, from any goroutine, and must not block.
// err is nil, ErrHeld (refused), ErrNotHeld (extend only), *NoQuorum, *Expired,
// *Busy, *Deadlock (waits only), *OtherLimit, ErrWrongType, ErrShutdown or ErrLeft.
type (
	LockDone   func(Grant, error)
	UnlockDone func(released bool, err error)
	ExtendDone func(Grant, error) // Grant.Validity() is what is left
)

// MasterStatus is one master as this daemon sees it, see pool.Status.
type MasterStatus = pool.Status

// Counters count since the start of the daemon.
type Counters struct {
	Acquired    int64 // grants
	Refused     int64 // acquires answered "no"
	NoQuorum    int64 // operations that could not be decided
	Expired     int64 // quorums that came too late
	Split       int64 // ballots in which no contender had a quorum
	Released    int64
	Extended    int64
	GivenBack   int64 // grants whose client had gone
	Undone      int64 // copies given back on single masters
	LateGrants  int64 // votes that came after the decision and were given back
	SecondSeals int64 // grants that needed one more seal for their fence
	ThirdSeals  int64 // grants that needed a third seal, because a voter failed in between
	Repaired    int64 // copies re-created on masters that had lost an extended lease
	IDs         int64 // ids given
	IDRounds    int64 // proposals to the masters for them
	WorkStarted int64 // attempts granted
	WorkDone    int64 // pieces of work marked done
	HoldsLost   int64 // leases that could not be renewed, or were lost to others
}
