// A further seal raises the register of a voter, so that a fence may fit.

package redlock

import (
	"redlockd/pool"
	"redlockd/redlock/quorum"
)

// intervalOf is what a seal lets an operation own at a lane's master.
func intervalOf(lane int, seal pool.Seal) quorum.Interval {
	return quorum.Interval{Lane: lane, Low: seal.Old, Top: seal.Top, Incarnation: seal.IncarnationID}
}

// registerRaise is a seal without a command on one voter's lane.
type registerRaise struct {
	lane     int
	onRaised func(lane int, seal pool.Seal)
}

var _ pool.Operation = (*registerRaise)(nil)

func (r *registerRaise) Props() pool.Props                             { return pool.Props{Sealed: true, SealOnly: true} }
func (r *registerRaise) Propose(int64)                                 {}
func (r *registerRaise) Command(*pool.SendContext, *pool.Command) bool { return false }
func (r *registerRaise) Answer(a pool.Answer)                          { r.onRaised(r.lane, a.Seal) }

// raiseRegisters queues a further seal on the given lanes.
func raiseRegisters(g *pool.Group, lanes []int, lifted func(int, pool.Seal)) {
	for _, lane := range lanes {
		g.Push(lane, &registerRaise{lane: lane, onRaised: lifted})
	}
}
