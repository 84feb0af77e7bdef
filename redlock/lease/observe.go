// This file finds out whether a lock is still what it was: the same holder and the same lease, not
// only an equal value.

package lease

import (
	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/quorum"
)

// Observation is a view of a key with the copies behind it.
type Observation struct {
	View
	quorum int
	copies [quorum.MaxMasters]observedCopy
}

// observedCopy is what a master showed. Each lease, and each extension of one, ends at another
// moment, see shorten.go.
type observedCopy struct {
	known, absent bool
	value         engine.Token
	ends          int64
}

// ObserveDone is called exactly once, from any goroutine; err is as of View.
type ObserveDone func(o *Observation, err error)

// Observe is View that waits for all masters.
func (l *Leases) Observe(b *engine.Batch, db int, key engine.Key, done ObserveDone) {
	if err := l.engine.Enter(); err != nil {
		done(nil, err)
		return
	}
	o := &observeCall{done: done}
	o.leases, o.key = l, l.engine.MasterKey(key)
	o.ballot.Ask(l.engine, b, l.engine.Pool.Group(db), nil, o)
}

type observeCall struct {
	viewCall
	copies [quorum.MaxMasters]observedCopy
	done   ObserveDone
}

func (o *observeCall) Read(answer pool.Answer) engine.Reading {
	reading := o.viewCall.Read(answer)
	if reading == engine.Neither {
		items := answer.Reply.Items
		seen := observedCopy{known: true, absent: len(items) == 0}
		if !seen.absent {
			seen.value, seen.ends = engine.Token(items[1].Str), items[3].Int
		}
		o.copies[answer.Lane] = seen
	}
	return reading
}

func (o *observeCall) Decide(t *quorum.Tally) quorum.Result {
	if t.Pending() > 0 {
		return quorum.Undecided
	}
	return o.viewCall.Decide(t)
}

func (o *observeCall) Decided(r quorum.Result) {
	o.leases.engine.Leave()
	if r == quorum.Granted {
		o.done(&Observation{View: o.agreed, quorum: o.ballot.Tally.Quorum, copies: o.copies}, nil)
		return
	}
	o.done(nil, o.ballot.NoQuorum("what stands at the key is unknown"))
}

// Same reports whether the lock has not changed between two observations: a quorum of copies is the
// same in both, so no quorum can have taken or prolonged it meanwhile. A key that was free at both
// times counts as unchanged.
func (o *Observation) Same(before *Observation) bool {
	same := 0
	for i, now := range o.copies {
		if now.known && now == before.copies[i] {
			same++
		}
	}
	return o.Kind == before.Kind && o.Value == before.Value && same >= o.quorum
}
