// Deps: what the commands need from the rest of the daemon.

package commands

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"time"

	"redlockd/commands/access"
	"redlockd/commands/dropin"
	"redlockd/pool"
	"redlockd/redlock"
	"redlockd/redlock/slots"
)

// Locks decides the lock commands on a quorum of masters. Every operation
// calls its completion exactly once, from any goroutine.
type Locks interface {
	Lock(*redlock.Batch, redlock.LockRequest, redlock.LockDone)
	// Wait is Lock for a request with Wait; leave ends the wait of a client that has gone.
	Wait(*redlock.Batch, redlock.LockRequest, redlock.LockDone) (leave func())
	Unlock(*redlock.Batch, redlock.UnlockRequest, redlock.UnlockDone)
	Extend(*redlock.Batch, redlock.ExtendRequest, redlock.ExtendDone)
	// GiveBack undoes a won acquire whose reply could not be delivered.
	GiveBack(redlock.Grant)
}

// IDs gives ids and manages their counters. Completions as for Locks.
type IDs interface {
	NextID(*redlock.Batch, redlock.IDRequest, redlock.IDDone)
	ReadCounter(db int, name redlock.Key, done func(redlock.Counter, error))
	ListCounters(db int, done func([]redlock.Key, error))
	Reseed(db int, name redlock.Key, value int64, done func(error))
	DeleteCounter(db int, name redlock.Key, confirm int64, done func([]redlock.CounterFate, error))
}

// Works decides which worker may attempt a piece of work, and ends and prolongs attempts
// for their workers. Completions as for Locks.
type Works interface {
	// leave ends the wait of a client that has gone.
	Work(*redlock.Batch, redlock.WorkRequest, redlock.WorkCompletion) (leave func())
	// WorkGiveBack undoes an attempt whose reply could not be delivered.
	WorkGiveBack(redlock.Work)
	ReadWork(db int, key redlock.Key, done func(redlock.WorkView, error))
	WorkDone(*redlock.Batch, redlock.WorkEndRequest, redlock.WorkEndDone)
	WorkFail(*redlock.Batch, redlock.WorkEndRequest, redlock.WorkEndDone)
	WorkExtend(*redlock.Batch, redlock.WorkEndRequest, redlock.WorkExtendDone)
}

// RedisCompat serves clients that use the quorum as one Redis. Completions as for Locks.
type RedisCompat interface {
	View(b *redlock.Batch, db int, key redlock.Key, done redlock.ViewDone)
	// Observe is View for a comparison with a later observation.
	Observe(b *redlock.Batch, db int, key redlock.Key, done redlock.ObserveDone)
	Write(*redlock.Batch, redlock.WriteRequest, redlock.WriteDone)
	// AwaitFree waits until the key is free; leave ends the wait of a client that has gone.
	AwaitFree(redlock.AwaitRequest, redlock.AwaitDone) (leave func())
	// Forward runs a command on the masters as they are, for Deps.CompatTest.
	Forward(*redlock.Batch, redlock.ForwardRequest, redlock.ForwardDone)
}

// Inspect reads locks and waiters, reports what happens to locks, and releases locks by
// force. Completions as for Locks.
type Inspect interface {
	ReadLock(db int, key redlock.Key, done func(redlock.LockView, error))
	ListLocks(redlock.Listing, func(redlock.LockPage, error))
	Waiting(db int, wanted func(redlock.Key) bool, most int) (list []redlock.Waiting, all int)
	Force(redlock.ForceRequest, func(bool, error))
	// Describe replaces the META of a holder; false if the token does not hold the key.
	Describe(id redlock.Lease, meta string, done func(bool, error))
	// Revoke notifies the connections that hold a key with HOLD, and answers how many these are.
	Revoke(db int, key redlock.Key, text string, done func(int, error))
	// HeldBy is how many running locks each connection took, by its number.
	HeldBy() map[int64]int
	// Listen calls onEvent for every event of a database's locks, one at a time, until
	// end is called; one may still be on its way then.
	Listen(db int, onEvent func(redlock.Event)) (end func())
	// Track calls report once when a key is no longer as a client has seen it, or, with lost,
	// when the masters cannot tell.
	Track(db int, key redlock.Key, seen redlock.Seen, report func(lost bool)) (stop func())
}

// Masters shows the masters and the figures of the work done on them, and takes masters
// out of service for maintenance, and back in.
type Masters interface {
	Reports(db int) []redlock.MasterReport
	DrainMaster(name string) error
	UndrainMaster(name string) error
	Counters() redlock.Counters
	// MasterCounters counts what passed between this daemon and its masters.
	MasterCounters() pool.Counters
	EventCounts() redlock.EventCounts
	InFlight() int // operations that have not been answered yet
	Waiters() int  // requests that wait
	Tracked() int  // keys that clients track
	Holds() int    // leases that are renewed
}

// ClientCounts has the figures of INFO about the clients' side.
type ClientCounts struct {
	Connected int   // open connections
	Limit     int   // --max-clients
	Accepted  int64 // connections since the start
	Rejected  int64 // connections refused because of the limit
	Commands  int64 // commands since the start
	Slow      int64 // clients closed because they left replies or messages unread
	Evicted   int64 // clients closed because of --max-memory-clients
	Memory    int   // bytes that count for --max-memory-clients
	Panics    int64 // recovered panics, each of which cost a connection; anything but 0 is a bug
}

// TraceCounts counts the spans of operations that a collector accepted, and those that
// were lost because it did not.
type TraceCounts struct{ Sent, Dropped int64 }

// Connections are all clients of the daemon.
type Connections interface {
	// Describe shows every client, by ID.
	Describe() []Description
	// Cut closes a connection at once; false if there is none of that ID.
	Cut(id int64) bool
	// Client is one for Push and OnClose, which are safe for others; nil if there is none of that ID.
	Client(id int64) *Client
}

// Policies for leases that Redis' own commands and scripts request. Any other word, as "deny", makes
// them an error that names the option.
const (
	PolicyClamp = "clamp" // LongTTL: the longest lease instead
	PolicyLease = "lease" // NoTTL: the longest lease instead
	PolicyAllow = "allow" // NoTTL: no expiry
)

// Deps is everything outside of this package that commands use. What may be nil or 0 is marked.
type Deps struct {
	Locks       Locks
	IDs         IDs
	Works       Works
	RedisCompat RedisCompat
	Inspect     Inspect
	Masters     Masters
	Connections Connections
	CompatTest  bool // --compat-test; false: FLUSHDB, plain SET and their like are not served

	Cluster func() slots.Division // nil: the daemon is no node of a cluster, --cluster-announce
	Slots   func() []slots.Served // nil: one group of masters has all slots

	KeyPrefix string        // stands before every key on the masters, --key-prefix
	Databases int           // SELECT accepts 0 … Databases−1; 0 means 16
	MaxTTL    time.Duration // longest lease, --max-ttl; 0 means 60 s
	MaxKeep   time.Duration // longest memory of finished work, --max-keep; 0 means 10 min
	MaxWait   time.Duration // longest wait, --max-wait; 0 means 10 min
	MaxHold   time.Duration // longest hold, --max-hold; 0: as long as it is extended
	// MasterTimeout is how much longer copies last than their leases; 0 means 100 ms.
	MasterTimeout time.Duration
	// MaxSubscriptions is how many channels and patterns a connection may subscribe
	// to, --max-subscriptions; 0 means 1 024.
	MaxSubscriptions int
	// FairKeys reports whether locks of a key are FAIR without saying so, --fair-keys; nil: none are.
	FairKeys       func(redlock.Key) bool
	LongTTL, NoTTL string             // policies
	Scripts        *dropin.Recogniser // nil: a new one without pins
	DropinStats    *dropin.Stats      // nil: new ones
	Requests       *Requests          // counts how they end; NewTable makes one
	VolatileIDs    bool               // a crash of masters may repeat ids; shown by INFO

	Version string    // of redlockd, shown by INFO
	RunID   string    // 40 hex digits, new in every process; "" means random ones
	Start   time.Time // of the process; zero means now
	Port    int       // shown by INFO
	Warning string    // of the settings, shown by INFO; "" is none

	Logger *slog.Logger // of connections in other use; nil: slog.Default

	Users *access.Users // nil: the default user may do everything, without a password

	LostMessages func() int64 // of the log; nil: none

	Clients func() ClientCounts
	Traces  func() TraceCounts               // nil: nothing is traced
	Config  func(pattern string) [][2]string // options whose name matches the glob pattern

	Audit    *Audit // nil: a new one
	commands *index // of the table; empty until all rows are made
}

// withDefaults fills what was left at zero.
func (d Deps) withDefaults() Deps {
	d.commands = &index{byName: make(map[string]*Command), tried: make(map[string]*Command)}
	d.Databases = cmp.Or(d.Databases, 16)
	d.MaxTTL = cmp.Or(d.MaxTTL, time.Minute)
	d.MaxKeep = cmp.Or(d.MaxKeep, 10*time.Minute)
	d.MaxWait = cmp.Or(d.MaxWait, 10*time.Minute)
	d.MasterTimeout = cmp.Or(d.MasterTimeout, 100*time.Millisecond)
	d.MaxSubscriptions = cmp.Or(d.MaxSubscriptions, 1024)
	if d.CompatTest {
		d.NoTTL = PolicyAllow // libraries take such locks by default, and test that
	}
	if d.Scripts == nil {
		d.Scripts, _ = dropin.New(nil) // fails for pins only
	}
	d.Requests = cmp.Or(d.Requests, new(Requests))
	d.DropinStats = cmp.Or(d.DropinStats, new(dropin.Stats))
	d.RunID = cmp.Or(d.RunID, randomRunID())
	if d.Start.IsZero() {
		d.Start = time.Now()
	}
	d.Logger = cmp.Or(d.Logger, slog.Default())
	d.Audit = cmp.Or(d.Audit, newAudit(d.Logger))
	return d
}

// randomRunID is 40 hex digits. Clients drop what they cached about a server
// when its run_id changes, so no two processes may share one.
func randomRunID() string {
	var id [20]byte
	rand.Read(id[:]) // never fails: the runtime ends the process instead
	return hex.EncodeToString(id[:])
}
