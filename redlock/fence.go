// The interval rule: which fences a grant may carry.
//
// At a master whose lock vote counted, the operation owns every fence above the master's
// register before its flush and up to the register after it. Two grants of one key share a
// master. There the later lock came after all raises of the earlier one. So a fence that lies
// in the intervals of a quorum is larger than every fence granted before its request, whatever
// clocks do.
//
// The masters and the daemons remember the registers. If all of them forget at once, the
// registers begin anew at the masters' clocks, or at pool.Options.FenceAbove.

package redlock

import "slices"

// interval is what one voter lets the operation own: (low, top].
type interval struct {
	low, top    int64
	incarnation string
	lane        int
	raised      bool // a further seal was sent
}

// fit returns max(proposal, q-th smallest low + 1) if it lies in the intervals
// of quorum voters. The proposal itself is never above a top, so a smaller
// fence that fits implies that this one fits.
func fit(voters []interval, quorum int, proposal int64) (int64, bool) {
	if len(voters) < quorum {
		return 0, false
	}
	var lows [maxMasters]int64
	n := 0
	for _, v := range voters {
		lows[n] = v.low
		n++
	}
	slices.Sort(lows[:n])
	fence := max(proposal, lows[quorum-1]+1)
	holds := 0
	for _, v := range voters {
		if v.low < fence && fence <= v.top {
			holds++
		}
	}
	return fence, holds >= quorum
}

// maxMasters is the largest group; arrays of it save an allocation per operation.
const maxMasters = 9
