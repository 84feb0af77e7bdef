// The ballots of a study, see redlock/THRIFTY.md: one that asks a bare quorum first.

package engine

import (
	"math/bits"

	"redlockd/pool"
)

// thrift is what a ballot has sent.
type thrift struct {
	list  any    // of masters
	all   uint16 // lanes, as bits
	first uint16 // that received it at once
	sent  uint16
}

// Sparing is a question that may begin with some masters: with lanes, or with those of the key.
type Sparing interface {
	Sparing() (key string, lanes uint16, hedged, spares bool)
}

// Everyone are all Engines of the process.
var Everyone []*Engine

// FirstLanes implements pool.Partial.
func (b *Ballot) FirstLanes(lanes int, list any, choose func(key string) uint16) uint16 {
	all := uint16(1)<<lanes - 1
	b.thrift = thrift{list: list, all: all, first: all, sent: all}
	q, ok := b.question.(Sparing)
	if !ok {
		return b.thrift.sent
	}
	key, some, hedged, spares := q.Sparing()
	if !spares {
		return b.thrift.sent
	}
	if some == 0 {
		some = choose(key)
	}
	b.thrift.first = some & b.thrift.all
	b.thrift.sent = b.thrift.first
	if pool.Thrifty.Hedge > 0 && hedged && b.thrift.sent != b.thrift.all {
		b.Engine.Clock.AfterFunc(pool.Thrifty.Hedge, func() { b.SendRest("timer", false) })
	}
	return b.thrift.sent
}

// hedge sends the question to the others after an answer that is no yes. An operation decides
// what it can without them.
func (b *Ballot) hedge() {
	b.mu.Lock()
	t := &b.Tally
	pending := bits.OnesCount16(b.thrift.sent) - t.Yes - t.No - t.Uncounted
	why := ""
	switch {
	case b.thrift.sent == b.thrift.all || b.Over():
	case t.Uncounted > 0:
		why = "fault"
	case t.Yes >= t.Quorum && b.fencing != nil && b.fencing.Rounds > 1:
		why = "fence"
	case t.No > 0 && (!pool.Thrifty.Wait || pending == 0):
		why = "refusal"
	}
	b.mu.Unlock()
	if why != "" {
		b.SendRest(why, false)
	}
}

// SendRest sends the question to the masters that have not received it, before the decision, or
// late, after it.
func (b *Ballot) SendRest(why string, late bool) {
	b.mu.Lock()
	rest := b.thrift.all &^ b.thrift.sent
	if rest == 0 || b.Over() != late {
		b.mu.Unlock()
		return
	}
	b.thrift.sent = b.thrift.all
	b.mu.Unlock()
	pool.Counts["sent to the rest: "+why]++
	b.Group.SendTo(rest, b.thrift.list, b)
}

// First reports whether a lane received the question at once.
func (b *Ballot) First(lane int) bool { return b.thrift.first == 0 || b.thrift.first&(1<<lane) != 0 }

// Sent are the lanes that have received the question.
func (b *Ballot) Sent() (sent, all uint16) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.thrift.sent, b.thrift.all
}
