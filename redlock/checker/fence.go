package checker

// The rules of fences, which order grants: no two tokens share a fence, and a grant
// answered before another was requested has the smaller one.

import (
	"cmp"
	"fmt"
	"slices"
)

// fences checks the fences of a key's grants. Repeats by one token that
// overlap may have equal or swapped fences: they are the same lock. Grants
// without a fence (0) are left out.
func (k *keyRecord) fences(f *findings) {
	var grants []*CallRecord
	for _, e := range k.proofs {
		if e.Op == Acquire && e.Fence != 0 {
			grants = append(grants, e)
		}
	}
	uniqueFences(grants, f)
	risingFences(grants, f)
}

func uniqueFences(grants []*CallRecord, f *findings) {
	sorted := slices.Clone(grants)
	slices.SortStableFunc(sorted, func(a, b *CallRecord) int { return cmp.Compare(a.Fence, b.Fence) })
	for i, first := 1, 0; i < len(sorted); i++ {
		switch {
		case sorted[i].Fence != sorted[first].Fence:
			first = i
		case sorted[i].Token != sorted[first].Token:
			f.add(fmt.Sprintf("fence %d was given to two tokens", sorted[i].Fence), sorted[first], sorted[i])
		}
	}
}

// risingFences walks the grants (sorted by Invoke) and keeps the highest fence
// of those answered before the one at hand was requested: O(n log n), and exact.
func risingFences(grants []*CallRecord, f *findings) {
	answered := slices.Clone(grants)
	slices.SortStableFunc(answered, func(a, b *CallRecord) int { return cmp.Compare(a.Complete, b.Complete) })
	var highest *CallRecord
	next := 0
	for _, e := range grants {
		for ; answered[next].Complete < e.Invoke; next++ {
			if highest == nil || answered[next].Fence > highest.Fence {
				highest = answered[next]
			}
		}
		if highest != nil && highest.Fence >= e.Fence {
			f.add(fmt.Sprintf("fence %d was answered before fence %d was requested, and is not below it",
				highest.Fence, e.Fence), highest, e)
		}
	}
}
