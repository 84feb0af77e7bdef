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
	// EndsBy: no extension of it lasts longer, on the pool's clock; 0 = as long as it is extended.
	EndsBy time.Duration

	// ballot made the grant. It is set if the caller chose the token and may be using it
	// through another daemon: only what the ballot made is ever given back without a request.
	// It is also set for a lock over several groups and its parts.
	ballot grantor
	made   Copies // what its ballot knows of the copies

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

// Copies reports what a ballot knows of the copies of its lease, now.
type Copies interface {
	CopiedEverywhere() bool // every master is known to have one
	WasRefused() bool       // some master has a copy of another token
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

// TakeCopies returns what the ballot of the grant knows of the copies, and lets the ballot go.
func (g *Grant) TakeCopies() (made Copies) {
	made, g.made = g.made, nil
	return made
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
