// The interval rule: which fences a grant may carry.
//
// At a master whose lock vote counted, the operation owns every fence above the master's
// register before its flush and up to the register after it. Two grants of one key share a
// master. There the later lock came after all raises of the earlier one. So a fence that lies
// in the intervals of a quorum is larger than every fence granted before its request, whatever
// clocks do. With exclusion, it is also larger than that of a lock which came and went while the
// request was under way. A master that refused the request before that lock came proves nothing
// about it, so a refusal lends no interval.
//
// The masters and the daemons remember the registers. If all of them forget at once, the
// registers begin anew at the masters' clocks, or at pool.Options.FenceAbove.

package quorum

import "slices"

// Interval is what one voter lets the operation own: (Low, Top].
type Interval struct {
	Lane        int
	Low, Top    int64
	Incarnation string // registers of two incarnations are not comparable
	raised      bool   // a further seal was sent
}

// Contains reports whether the operation owns the fence at this voter.
func (v *Interval) Contains(fence int64) bool { return v.Low < fence && fence <= v.Top }

// fit returns max(proposal, q-th smallest low + 1) if it lies in the intervals
// of quorum voters. The proposal itself is never above a top, so a smaller
// fence that fits implies that this one fits.
func fit(voters []Interval, quorum int, proposal int64) (int64, bool) {
	if len(voters) < quorum {
		return 0, false
	}
	var lows [MaxMasters]int64
	for i, v := range voters {
		lows[i] = v.Low
	}
	slices.Sort(lows[:len(voters)])
	fence := max(proposal, lows[quorum-1]+1)
	return fence, containing(voters, fence) >= quorum
}

// containing counts the voters whose interval contains the fence.
func containing(voters []Interval, fence int64) (n int) {
	for i := range voters {
		if voters[i].Contains(fence) {
			n++
		}
	}
	return n
}

// MaxMasters is the largest group; arrays of it save an allocation per operation.
const MaxMasters = 9

// maxRounds bounds the further seals of one ballot. One is enough by construction. A second is
// for voters that failed in between, and beyond that nothing helps.
const maxRounds = 3

// Fencing chooses a grant's fence from the votes, with a further seal if necessary. Its owner's
// lock guards it.
type Fencing struct {
	Proposal int64
	Rounds   int // of further seals
	voters   [MaxMasters]Interval
	yes      int // voters[:yes] are filled
	raising  int // seals under way
}

// Voted adds a voter's interval.
func (f *Fencing) Voted(v Interval) {
	f.voters[f.yes] = v
	f.yes++
}

// Choose is called with a quorum of yes. It returns the fence, or the lanes whose register must
// be raised first. The further seal starts at once, without waiting for the other votes; voters
// that come later get it too. impossible means that no fence can be had.
func (f *Fencing) Choose(quorum, pending int) (fence int64, raise []int, impossible bool) {
	fence, ok := fit(f.voters[:f.yes], quorum, f.Proposal)
	if ok {
		return fence, nil, false
	}
	switch {
	case f.raising > 0:
		if last := &f.voters[f.yes-1]; !last.raised {
			raise = []int{last.Lane}
		}
	case f.Rounds < maxRounds:
		f.Rounds++
		for i := range f.voters[:f.yes] {
			raise = append(raise, f.voters[i].Lane)
		}
	default:
		return 0, nil, pending == 0
	}
	for _, lane := range raise {
		f.Voter(lane).raised = true
	}
	f.raising += len(raise)
	return 0, raise, false
}

// Raised takes the answer of one further seal; good reports whether it counts. The upper end of
// the voter's interval rises, and the lower end stays that of the lock's own flush. Only answers
// of the same incarnation are compared.
func (f *Fencing) Raised(seal Interval, good bool) {
	f.raising--
	if v := f.Voter(seal.Lane); good && seal.Incarnation == v.Incarnation {
		v.Top = max(v.Top, seal.Top)
	}
}

// Voter is the interval of a lane's master; an empty one if it has not voted.
func (f *Fencing) Voter(lane int) *Interval {
	for i := range f.voters[:f.yes] {
		if f.voters[i].Lane == lane {
			return &f.voters[i]
		}
	}
	return &Interval{}
}

// Containing counts the voters whose interval contains the fence.
func (f *Fencing) Containing(fence int64) int { return containing(f.voters[:f.yes], fence) }
