// One more seal, when no fence lies in the intervals of a quorum: another
// daemon raised the registers in between. It raises them above everything seen,
// so it suffices unless a voter fails meanwhile.
package redlock

import "redlockd/pool"

// maxRounds bounds the seals of one attempt. One is enough by construction; a
// second is for voters that failed in between, and beyond that nothing helps.
const maxRounds = 3

// raiser is a bare seal on one voter's lane.
type raiser struct {
	attempt *attempt
	lane    int
}

var _ pool.Operation = (*raiser)(nil)

func (r *raiser) Plan() pool.Plan                          { return pool.Plan{Sealed: true, Bare: true} }
func (r *raiser) Propose(int64)                            {}
func (r *raiser) Command(*pool.Moment, *pool.Command) bool { return false }

// Answer lifts the upper end of the voter's interval; the lower end stays that
// of the lock's own flush, and only the same memory may be compared.
func (r *raiser) Answer(answer pool.Answer) {
	a := r.attempt
	a.mu.Lock()
	a.raising--
	if a.over {
		a.mu.Unlock()
		return
	}
	for i := range a.voters[:a.yes] {
		v := &a.voters[i]
		if v.lane == r.lane && answer.Seal.Good && answer.Seal.Lineage == v.lineage {
			v.top = max(v.top, answer.Seal.Top)
		}
	}
	step := a.decide()
	a.mu.Unlock()
	step.run(a)
}

// chooseFence is called with a quorum of yes. The seal starts at once, without
// waiting for the other votes; voters that come later get it too.
func (a *attempt) chooseFence() next {
	fence, ok := fit(a.voters[:a.yes], a.tally.quorum, a.proposal)
	if ok {
		a.over, a.won = true, true
		return next{fence: fence}
	}
	var lanes []int
	switch {
	case a.raising > 0 && a.rounds > 0:
		last := a.voters[a.yes-1]
		if !last.asked {
			lanes = []int{last.lane}
		}
	case a.rounds < maxRounds:
		a.rounds++
		for i := range a.voters[:a.yes] {
			lanes = append(lanes, a.voters[i].lane)
		}
	case a.tally.pending() == 0:
		a.over = true
		return next{fail: unknown}
	}
	a.mark(lanes)
	return next{raise: lanes}
}

func (a *attempt) mark(lanes []int) {
	for _, lane := range lanes {
		for i := range a.voters[:a.yes] {
			if a.voters[i].lane == lane {
				a.voters[i].asked = true
			}
		}
	}
	a.raising += len(lanes)
}
