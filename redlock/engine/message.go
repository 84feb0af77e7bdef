package engine

import (
	"redlockd/pool"
	"redlockd/redlock/quorum"
)

// Message is a command whose answers are no votes: for one master, or for all of them when it
// does not matter which of them receive it.
type Message struct {
	Plan      pool.Props
	Write     func(*pool.SendContext, *pool.Command) bool // nil with Plan.SealOnly
	OnAnswer  func(pool.Answer)                           // nil: the answers do not matter
	OnPropose func(fence int64)                           // nil: the message has no fence
}

var _ pool.Operation = (*Message)(nil)

// Props returns the message's plan.
func (o *Message) Props() pool.Props { return o.Plan }

// Propose passes the fence on.
func (o *Message) Propose(fence int64, _ int) {
	if o.OnPropose != nil {
		o.OnPropose(fence)
	}
}

// Command writes the command for one master.
func (o *Message) Command(m *pool.SendContext, c *pool.Command) bool {
	return o.Write != nil && o.Write(m, c)
}

// Answer passes an answer on.
func (o *Message) Answer(a pool.Answer) {
	if o.OnAnswer != nil {
		o.OnAnswer(a)
	}
}

// RetryUntilAnswered sends a release to one master until an answer settles it.
func RetryUntilAnswered(g *pool.Group, lane int, key string, release pool.PendingRelease) {
	g.Push(lane, &Message{
		Plan:  pool.Props{Key: key, SharesKey: true, Again: release.Once},
		Write: release.Write,
		OnAnswer: func(a pool.Answer) {
			if !release.SettledBy(a) {
				g.RetryRelease(a.Lane, release)
			}
		},
	})
}

// Publish sends a message to the subscribers of a channel, by every connected master. Whether one of
// them accepts it makes no difference: another one does, or the message is lost.
func Publish(p *pool.Pool, g *pool.Group, channel, message string) {
	o := &Message{Write: func(_ *pool.SendContext, c *pool.Command) bool {
		c.Set("PUBLISH", channel, message)
		return true
	}}
	for lane := range p.N() {
		g.Push(lane, o)
	}
}

// RaiseRegisters queues a further seal on the given lanes. It raises the registers to the group's
// clock, and at least to a fence.
func RaiseRegisters(g *pool.Group, fence int64, lanes []int, onRaised func(lane int, seal pool.Seal)) {
	raise := &Message{
		Plan:     pool.Props{Sealed: true, SealOnly: true, RaiseTo: fence},
		OnAnswer: func(a pool.Answer) { onRaised(a.Lane, a.Seal) },
	}
	for _, lane := range lanes {
		g.Push(lane, raise)
	}
}

// IntervalOf is what a seal lets an operation own at a lane's master.
func IntervalOf(lane int, seal pool.Seal) quorum.Interval {
	return quorum.Interval{Lane: lane, Low: seal.Old, Top: seal.Top, Incarnation: seal.IncarnationID}
}
