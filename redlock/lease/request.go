package lease

import (
	"slices"
	"strings"
	"time"

	"redlockd/redlock/engine"
	"redlockd/redlock/quorum"
)

// LockRequest requests a lock.
type LockRequest struct {
	DB  int           // logical database, 0 … Options.Databases−1
	Key engine.Key    // 1–512 bytes, validated by the caller
	TTL time.Duration // 10 ms … MaxTTL, validated by the caller
	// Linger is how much longer than the lease its copies stay: nobody else gets the key for so long. TTL
	// and Linger are at most MaxTTL.
	Linger time.Duration
	Token  engine.Token // "" = generate one (27 characters, 136 random bits)

	Mode Mode         // nil = Exclusive
	More []engine.Key // further keys, different from Key and from one another: all of them or none

	Requester *Requester // the client that makes the request, for people; nil = unknown
}

// tries reports whether a request does not wait, and its client is known: it may come again.
func (r *LockRequest) tries() bool {
	return !r.Mode.waits() && r.Requester != nil && r.Mode.announced()
}

// Requester describes the client of a request, for people.
type Requester struct {
	ID              int64  // number of the connection in this daemon
	Addr, Host      string // Host without the port
	Name, User      string
	LibName, LibVer string // CLIENT SETINFO
	Meta            string // free text that the holder gives, at most 512 bytes
	// Trace receives the votes on this one request; may be nil. It is here because a
	// waiter costs what a LockRequest costs.
	Trace *engine.Trace
}

// untraced is the client without the trace of this one request, to be kept as long as its lease.
func (r *Requester) untraced() *Requester {
	if r == nil || r.Trace == nil {
		return r
	}
	client := *r
	client.Trace = nil
	return &client
}

// Kind is how the request's keys are to be held.
func (r *LockRequest) Kind() (k Kind) {
	if r.Mode != nil {
		k = r.Mode.Kind()
	}
	return k
}

// lasts is for how long the copies are written.
func (r *LockRequest) lasts() time.Duration { return r.TTL + r.Linger }

// SortedKeys are the keys of the request, in rising order.
func (r *LockRequest) SortedKeys() []engine.Key {
	keys := append([]engine.Key{r.Key}, r.More...)
	slices.Sort(keys)
	return keys
}

// eachLease passes the leases of the request's keys to do, in the order of the request.
func (r *LockRequest) eachLease(own engine.Token, do func(engine.LeaseID)) {
	do(engine.LeaseID{DB: r.DB, Key: r.Key, Token: own})
	for i, key := range r.More {
		do(engine.LeaseID{DB: r.DB, Key: key, Token: r.Mode.tokenOf(i+1, own)})
	}
}

func (r *LockRequest) sortedIDs() (ids []engine.LeaseID) {
	r.eachLease(r.Token, func(id engine.LeaseID) { ids = append(ids, id) })
	slices.SortFunc(ids, func(a, b engine.LeaseID) int { return strings.Compare(string(a.Key), string(b.Key)) })
	return ids
}

func (r *LockRequest) trace() *engine.Trace {
	if r.Requester == nil {
		return nil
	}
	return r.Requester.Trace
}

// UnlockRequest gives a lock back.
type UnlockRequest struct {
	DB     int
	Key    engine.Key
	Token  engine.Token
	Linger time.Duration // the copies stay so much longer than the lease, which ends now; never longer than they were to
	Trace  *engine.Trace // receives the votes; nil = not traced
}

// ExtendRequest makes a held lock last at least TTL from now, or just TTL if it is Exact.
type ExtendRequest struct {
	DB     int
	Key    engine.Key
	More   []engine.Key // further keys: all of them are extended or none
	Token  engine.Token
	TTL    time.Duration
	Linger time.Duration // as of LockRequest; 0 = that of the grant, if this daemon made it
	Trace  *engine.Trace // receives the votes; nil = not traced

	// Exact: the lease ends after TTL even if it was longer, as a client of one Redis expects of
	// EXPIRE or of its library's renewal. Only exclusive locks; others are ErrNoValue.
	Exact bool
	// EndlessToo: with Exact, a copy without an expiry is a lock, not foreign data.
	EndlessToo bool
	// Seen: with Exact and one key, only copies that still end as this view showed; nil = any.
	Seen *View

	EndsBy time.Duration // as of HoldLimit
	// Longest and Whole are for package maxhold: as of HoldLimit, if the lock has no longest time yet, and
	// whether a shorter time than TTL is of no use, because the client does not learn of it.
	Longest time.Duration
	Whole   bool

	repeats    bool          // it is a client's, and repeated if the masters are too slow
	unanswered time.Duration // as of acquireCall
}

// View is what a quorum agrees on.
type View struct {
	Kind  string       // "none", "string" for an exclusive lock, "zset" readers, "hash" permits
	Free  bool         // a quorum has nothing; without it "none" may be copies of several tokens, none of which has a quorum
	Value engine.Token // of a string
	// Left is how long at least a quorum will hold it, above 0; Endless without an
	// expiry. It excludes the time by which copies may outlast their lease, so it is
	// never more than was requested.
	Left time.Duration
	// Longest is how long some of these copies last. What the holder was promised last is at least
	// Left and at most Longest.
	Longest time.Duration
	// ends are the copies' expiries on the masters that agreed, ms of their clocks, by lane.
	ends *[quorum.MaxMasters]int64
}

// Completions are called exactly once, from any goroutine, and must not block.
// err is nil, ErrHeld (refused), ErrNotHeld (extend only), *NoQuorum, *Expired,
// *Busy, *Deadlock (waits only), *OtherLimit, ErrWrongType, ErrShutdown or ErrLeft.
type (
	LockDone   func(Grant, error)
	UnlockDone func(released bool, err error)
	ExtendDone func(Grant, error) // Grant.Validity() is what is left
)

// Endless is the TTL of a lock without an expiry, where such locks are allowed. If a
// master is unreachable when such a lock is released, its copy stays for good.
const Endless = 100 * 365 * 24 * time.Hour
