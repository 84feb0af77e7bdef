package lease

import (
	"time"

	"redlockd/redlock/engine"
)

// Grant is a lock that a quorum of masters gave.
type Grant struct {
	Key   engine.Key
	More  []engine.Key // further keys, of a request for several
	Token engine.Token
	Fence engine.Fence
	// Fresh is false when some master already held this token: the lease
	// existed before, and an undeliverable reply must not take it back.
	Fresh bool
	Hold  Hold // its renewal; nil unless requested

	// ballot made the grant. It is set if the caller chose the token and may be using it
	// through another daemon: only what the ballot made is ever given back without a request.
	// It is also set for a lock over several groups and its parts.
	ballot grantor

	engine.Term
	db     int
	kind   Kind
	part   bool // of a lock over several groups, which is not announced yet
	linger time.Duration

	chosen bool // the token, by the caller
}

// grantor is the ballot that made a grant, or the parts that are one.
type grantor interface {
	takeBack()
	tokenOf(i int) engine.Token
}

// Keys are all keys of the grant, DB is their database.
func (g *Grant) Keys() []engine.Key { return append([]engine.Key{g.Key}, g.More...) }
func (g *Grant) DB() int            { return g.db }

// TokenOf is the token of the i-th of Keys.
func (g *Grant) TokenOf(i int) engine.Token {
	if g.ballot == nil {
		return g.Token
	}
	return g.ballot.tokenOf(i)
}

// Kind is how the key is held.
func (g *Grant) Kind() Kind { return g.kind }

// Linger is how much longer than the validity the key stays taken, unless the lock is released.
func (g *Grant) Linger() time.Duration { return g.linger }

// Chosen reports whether the caller chose the token, and may be using it through another daemon.
func (g *Grant) Chosen() bool { return g.chosen }

// Lease is the lease of the first key, and Leases are those of all keys.
func (g *Grant) Lease() engine.LeaseID { return engine.LeaseID{DB: g.db, Key: g.Key, Token: g.Token} }
func (g *Grant) Leases() (all []engine.LeaseID) {
	for _, key := range g.Keys() {
		all = append(all, engine.LeaseID{DB: g.db, Key: key, Token: g.Token})
	}
	return all
}

// HoldTerms are how long a lease is renewed, and the function that reports its end.
type HoldTerms struct {
	MaxTime time.Duration // since the granted ballot began; 0 = without an end
	Longest time.Duration // likewise, and no renewal lasts beyond it
	EndsBy  time.Duration // no renewal lasts beyond it, on the pool's clock; 0 = without an end
	// OnEnd is called once, from any goroutine: with nil when the lease was released, else with
	// the reason for its loss. The keys stay taken for goesOn after that, unless a release that is
	// under way is acknowledged before; 0 = they are released, or lost.
	OnEnd func(g Grant, reason error, goesOn time.Duration)
	// OnWanted is called, from any goroutine, when a client requests that the holder lets go of
	// this key; nil = it is not. It may come shortly after OnEnd.
	OnWanted func(key engine.Key, text string)
}

// Hold is the renewal of a lease.
type Hold interface {
	// End ends the renewal and releases the lease, as when its connection has ended; with a linger,
	// the lease ends so much later. A daemon that drains only ends the renewal.
	End()
	// Abandon ends the renewal without a release, as when the daemon ends the connection of
	// a client that may be at work: the lease runs out by itself.
	Abandon(reason error)
}
