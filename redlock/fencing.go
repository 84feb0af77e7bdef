// fencing chooses a grant's fence from the votes, with a further seal if necessary.

package redlock

import "redlockd/pool"

// maxRounds bounds the further seals of one ballot. One is enough by construction. A second is
// for voters that failed in between, and beyond that nothing helps.
const maxRounds = 3

// fencing collects the intervals of a ballot's voters. Its owner's lock guards it.
type fencing struct {
	proposal int64
	voters   [maxMasters]interval
	yes      int // voters[:yes] are filled
	raising  int // seals under way
	rounds   int // of them
}

// voted adds a voter's interval.
func (f *fencing) voted(lane int, seal pool.Seal) {
	f.voters[f.yes] = interval{low: seal.Old, top: seal.Top, incarnation: seal.IncarnationID, lane: lane}
	f.yes++
}

// choose is called with a quorum of yes. It returns the fence, or the lanes whose register must
// be raised first. The further seal starts at once, without waiting for the other votes; voters
// that come later get it too. impossible means that no fence can be had.
func (f *fencing) choose(quorum, pending int) (fence int64, raise []int, impossible bool) {
	fence, ok := fit(f.voters[:f.yes], quorum, f.proposal)
	if ok {
		return fence, nil, false
	}
	switch {
	case f.raising > 0:
		if last := &f.voters[f.yes-1]; !last.raised {
			raise = []int{last.lane}
		}
	case f.rounds < maxRounds:
		f.rounds++
		for i := range f.voters[:f.yes] {
			raise = append(raise, f.voters[i].lane)
		}
	default:
		return 0, nil, pending == 0
	}
	for _, lane := range raise {
		f.voter(lane).raised = true
	}
	f.raising += len(raise)
	return 0, raise, false
}

// onRaised takes the answer of one further seal. The upper end of the voter's interval rises,
// and the lower end stays that of the lock's own flush. Only answers of the same incarnation
// are compared.
func (f *fencing) onRaised(lane int, seal pool.Seal) {
	f.raising--
	if v := f.voter(lane); seal.Good && seal.IncarnationID == v.incarnation {
		v.top = max(v.top, seal.Top)
	}
}

func (f *fencing) voter(lane int) *interval {
	for i := range f.voters[:f.yes] {
		if f.voters[i].lane == lane {
			return &f.voters[i]
		}
	}
	return &interval{} // never: only voters are raised
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
