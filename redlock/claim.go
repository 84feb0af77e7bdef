// The fence of those who may hold the key together.
//
// Exclusive grants of a key follow one another, and the interval rule (fence.go)
// leans on that. Readers and permits overlap: one's further seal can come after
// the other's lock, and then both may find the same smallest value that fits. So
// theirs is always a proposal of their own, exactly: it must lie, on each master
// of a quorum that gave the lock, between what one single seal found in the
// register and what the same seal left there. Two such operations share a
// master, where whichever sealed first left at least its own fence for the other
// to find; within a daemon claimed keeps them apart. If the proposal does not fit,
// because somebody else's seal was there first, one more seal follows with a new
// one, a little ahead of the clock: other daemons raise the registers to their
// clocks all the time, also while it is on its way.
package redlock

import (
	"sync"
	"time"

	"redlockd/pool"
)

const (
	// maxClaims bounds the further seals. The second and later ones fail only if
	// other daemons claim fences of their own at the same time.
	maxClaims = 12
	// firstAhead and lastAhead are how far ahead of the clock the first further
	// seal is, and the last: small beside what registers may be ahead at all.
	firstAhead = 500 * time.Microsecond
	lastAhead  = 16 * time.Millisecond
)

// claim is one further seal on all masters, with a proposal of its own.
type claim struct {
	attempt  *attempt
	ahead    int64 // µs
	fence    int64
	answered int // the attempt's lock guards these
	fits     int
	over     bool // decided
}

var _ pool.Operation = (*claim)(nil)

// Plan: a lock's vote has been counted when the answer of a later seal on the
// same lane comes.
func (c *claim) Plan() pool.Plan                          { return pool.Plan{Sealed: true, Bare: true, Ahead: c.ahead} }
func (c *claim) Propose(fence int64)                      { c.fence = fence + c.ahead }
func (c *claim) Command(*pool.Moment, *pool.Command) bool { return false }

// Answer counts masters that gave the lock and have not been in this memory
// above the fence.
func (c *claim) Answer(answer pool.Answer) {
	a, seal := c.attempt, answer.Seal
	a.mu.Lock()
	c.answered++
	if v := a.fencing.voter(answer.Lane); seal.Good && seal.Lineage == v.lineage && seal.Old < c.fence && c.fence <= seal.Top {
		c.fits++
	}
	var step next
	switch {
	case a.over, c.over:
	case c.fits >= a.tally.quorum && a.claims(c.fence):
		a.over, a.won = true, true
		step.fence = c.fence
	case c.fits >= a.tally.quorum, c.fits+a.tally.n-c.answered < a.tally.quorum:
		// Somebody else has it, or masters still to come cannot make up for those
		// that it does not fit: a slow one is not waited for.
		c.over, a.claiming = true, false
		step = a.decide()
	}
	a.mu.Unlock()
	step.run(a)
}

// claimLocked is the fence of a quorum of yes for those who are together: the
// attempt's own proposal, or one more seal.
func (a *attempt) claimLocked() next {
	switch {
	case a.fencing.around(a.fencing.proposal) >= a.tally.quorum && a.claims(a.fencing.proposal):
		a.over, a.won = true, true
		return next{fence: a.fencing.proposal}
	case a.claiming:
		return next{}
	case a.fencing.rounds == maxClaims:
		a.over = true
		return next{fail: unknown}
	}
	a.fencing.rounds++
	a.claiming = true
	return next{claim: min(firstAhead<<(a.fencing.rounds-1), lastAhead)}
}

func (a *attempt) claims(fence int64) bool {
	l := a.call.locker
	return l.claimed.first(fence, l.recent(), 4*l.late)
}

// claimed are the fences that this daemon gave to those who are together, for as
// long as a seal that holds them can be on its way.
type claimed struct {
	mu         sync.Mutex
	young, old map[int64]struct{}
	rotated    time.Duration
}

// first tells whether nobody else has got the fence, and notes it.
func (c *claimed) first(fence int64, now, keep time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.young == nil || now-c.rotated > keep {
		c.old, c.young, c.rotated = c.young, map[int64]struct{}{}, now
	}
	_, young := c.young[fence]
	_, old := c.old[fence]
	c.young[fence] = struct{}{}
	return !young && !old
}

// around counts the voters in whose interval the fence lies.
func (f *fencing) around(fence int64) (n int) {
	for _, v := range f.voters[:f.yes] {
		if v.low < fence && fence <= v.top {
			n++
		}
	}
	return n
}
