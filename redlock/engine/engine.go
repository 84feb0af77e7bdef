// Engine: what every operation needs of the masters, and the bound of what is in flight.

package engine

import (
	"sync/atomic"
	"time"

	"redlockd/pool"
	"redlockd/redlock/scripts"
	"redlockd/redlock/stored"
)

// Engine is what operations share.
type Engine struct {
	Pool          *pool.Pool
	Clock         pool.Clock
	Recent        func() time.Duration // the clock, or a cheaper one that is never ahead of it
	MasterTimeout time.Duration        // the longest time that a flush may take
	Late          time.Duration        // how much longer copies last than their leases; see pool.Options
	InProcess     bool                 // the masters are in this process and have this daemon's clock
	MaxTTL        time.Duration
	KeyPrefix     string // stands before every key on the masters
	MaxOperations int    // in flight at once
	Scripts       *scripts.Set
	Ownership     Ownership // nil: the group has all keys; see ownership.go
	Counts        Counts[atomic.Int64]

	inFlight atomic.Int64
	closing  atomic.Bool
}

// New returns an Engine on the pool's masters, and the scripts that its operations need on them.
func New(p *pool.Pool, keyPrefix string, maxOperations int) (*Engine, []string, error) {
	set, texts, err := scripts.Load()
	if err != nil {
		return nil, nil, err
	}
	return &Engine{
		Pool: p, Clock: p.Clock(), Recent: pool.Recent(p.Clock()),
		MasterTimeout: p.Options().MasterTimeout, Late: p.Options().Late, InProcess: p.Embedded() != nil, MaxTTL: p.Options().MaxTTL,
		KeyPrefix: keyPrefix, MaxOperations: maxOperations, Scripts: set,
	}, texts, nil
}

// Submit queues an operation, at once or with its read batch.
func (e *Engine) Submit(b *Batch, g *pool.Group, op pool.Operation) {
	if b != nil {
		b.Add(g, op)
		return
	}
	var own pool.Batch
	own.Add(g, op)
	own.Send()
}

// MasterKey is a key's name on the masters.
func (e *Engine) MasterKey(k Key) string { return e.KeyPrefix + string(k) }

// KeyOf is the name of redlockd's own key of a kind that belongs to k.
func (e *Engine) KeyOf(kind string, k Key) string {
	return e.KeyPrefix + stored.Own + kind + string(k)
}

// Enter counts an operation that begins. The error is ErrShutdown or *Busy.
func (e *Engine) Enter() error {
	if e.closing.Load() {
		return ErrShutdown
	}
	if n := e.inFlight.Add(1); n > int64(e.MaxOperations) {
		e.inFlight.Add(-1)
		return &Busy{What: "operations in flight", Limit: e.MaxOperations, Option: "--max-operations"}
	}
	return nil
}

// EnterAlways counts an operation that must run, beyond the limit if necessary.
func (e *Engine) EnterAlways() { e.inFlight.Add(1) }

// Leave counts an operation that has been answered.
func (e *Engine) Leave() { e.inFlight.Add(-1) }

// InFlight is how many operations have not been answered yet.
func (e *Engine) InFlight() int { return int(e.inFlight.Load()) }

// Close rejects new operations from now on.
func (e *Engine) Close() { e.closing.Store(true) }
