// sharedFence chooses the fences of readers and permits, which may hold a key together.
//
// Exclusive grants of a key follow one another, and the interval rule (quorum/fence.go) relies on
// that. Readers and permits overlap: the further seal of one operation can come after the lock
// of another. Then both may find the same smallest value that fits.
//
// So the fence of such an operation is always exactly its own proposal. On each master of a
// quorum that gave the lock, the proposal must lie between two values: what one single seal
// found in the register, and what the same seal left there. Two such operations share a master.
// There the first seal left at least its own fence, and the second seal finds it. Within one
// daemon, usedFences keeps their fences apart.
//
// The proposal does not fit if the seal of another operation came first. Then another seal
// follows with a new proposal, a little ahead of the clock: other daemons raise the registers
// to their clocks all the time, also while this seal is under way.

package lease

import (
	"time"

	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/quorum"
)

const (
	// maxSharedFenceSeals bounds the further seals. The second and later ones fail only if
	// other daemons choose shared fences at the same time.
	maxSharedFenceSeals = 12
	// minAhead and maxAhead are how far the first and the last further seal are ahead of the
	// clock: little compared with what registers may be ahead at all.
	minAhead = 500 * time.Microsecond
	maxAhead = 16 * time.Millisecond
)

// sharedFences is the search of one ballot, guarded by the ballot's lock.
type sharedFences struct {
	open   bool          // another seal is in flight
	ahead  time.Duration // > 0: another seal must be queued, with a proposal this far ahead
	chosen int64         // the fence that a further seal has proved
}

// sharedFence is one further seal on all masters, with a proposal of its own.
type sharedFence struct {
	ballot   *lockBallot
	of       *sharedFences
	fence    int64
	answered int // the ballot's lock guards this and the fields below
	fits     int
	over     bool // decided
}

// raiseRegisters queues the seal that a fence needs.
func (s *sharedFences) raiseRegisters(a *lockBallot) {
	a.ballot.Lock()
	ahead := s.ahead
	s.ahead = 0
	a.ballot.Unlock()
	if ahead > 0 {
		s.sealAhead(a, ahead)
	}
}

// sealAhead queues another seal with a proposal that is ahead of the clock. The answer of a later
// seal on a lane comes after the lock's vote has been counted.
func (s *sharedFences) sealAhead(a *lockBallot, ahead time.Duration) {
	c := &sharedFence{ballot: a, of: s}
	a.ballot.Engine.Submit(nil, a.ballot.Group, &engine.Message{
		Plan:      pool.Props{Sealed: true, SealOnly: true, RaiseBy: ahead.Microseconds()},
		OnPropose: func(fence int64) { c.fence = fence + ahead.Microseconds() },
		OnAnswer:  c.onAnswer,
	})
}

// onAnswer counts masters that gave the lock and whose register, in the same incarnation, was
// below the fence.
func (c *sharedFence) onAnswer(answer pool.Answer) {
	a, seal := c.ballot, answer.Seal
	a.ballot.Reconsider(func() bool {
		c.answered++
		if v := a.fencing.Voter(answer.Lane); seal.Good && seal.IncarnationID == v.Incarnation && seal.Old < c.fence && c.fence <= seal.Top {
			c.fits++
		}
		t := &a.ballot.Tally
		switch {
		case a.ballot.Over(), c.over:
			return false
		case c.fits >= t.Quorum && reserveSharedFence(a, c.fence):
			c.of.chosen = c.fence
			return true
		case c.fits >= t.Quorum, c.fits+t.N-c.answered < t.Quorum:
			// Another operation has the fence, or masters still to come cannot make up for those
			// that it does not fit. The ballot does not wait for a slow master.
			c.over, c.of.open = true, false
			return true
		}
		return false
	})
}

// chooseFenceLocked chooses the fence for a quorum of yes in a shared mode: the ballot's
// own proposal, or that of another seal.
func (s *sharedFences) chooseFenceLocked(a *lockBallot) quorum.Result {
	b, f := &a.ballot, &a.fencing
	switch {
	case s.chosen > 0:
		b.Fence = s.chosen
		return quorum.Granted
	case f.Containing(b.Proposal) >= b.Tally.Quorum && reserveSharedFence(a, b.Proposal):
		b.Fence = b.Proposal
		return quorum.Granted
	case s.open:
		return quorum.Undecided
	case f.Rounds == maxSharedFenceSeals:
		return quorum.Unknown
	}
	f.Rounds++
	s.open, s.ahead = true, min(minAhead<<(f.Rounds-1), maxAhead)
	return quorum.Undecided
}

func reserveSharedFence(a *lockBallot, fence int64) bool {
	l := a.call.leases
	return l.ofDaemon().usedFences.reserve(fence, l.engine.Recent(), 4*l.engine.MasterTimeout)
}
