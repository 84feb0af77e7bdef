package checker

// The rule of permits: no more tokens than there are permits hold one key at the
// same time.

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"
)

// CheckPermits checks a history whose acquires are for one of Limit permits, or
// for the whole key.
func CheckPermits(h History) error {
	return errors.Join(checkSwept(h, (*keyRecord).counted), checkTogetherLinear(h, searchBounds{}))
}

// counted walks the beginnings and ends of all stays; at the same instant an
// end comes first. A token that holds twice, say by a repeat, counts once.
func (k *keyRecord) counted(f *findings) {
	limit := 1
	for _, t := range k.tokens {
		for _, e := range t.acquires { // also those of which only an extend was answered
			limit = max(limit, e.Limit)
		}
	}
	type edge struct {
		at    time.Duration
		by    int
		event *CallRecord
	}
	var edges []edge
	for _, t := range k.tokens {
		for _, l := range t.leases() {
			edges = append(edges, edge{l.from, 1, l.first}, edge{l.end, -1, l.first})
		}
	}
	slices.SortStableFunc(edges, func(a, b edge) int {
		if a.at != b.at {
			return cmp.Compare(a.at, b.at)
		}
		return a.by - b.by
	})
	holding := map[string]*CallRecord{}
	for _, e := range edges {
		if e.by < 0 {
			delete(holding, e.event.Token)
			continue
		}
		holding[e.event.Token] = e.event
		alone := false
		for _, other := range holding {
			alone = alone || other.Op == Acquire && other.Limit == 0
		}
		if len(holding) > limit || alone && len(holding) > 1 {
			var all []*CallRecord
			for _, other := range holding {
				all = append(all, other)
			}
			slices.SortFunc(all, func(a, b *CallRecord) int { return cmp.Compare(a.Complete, b.Complete) })
			f.add(fmt.Sprintf("%d tokens hold it at %v, one of them alone: %v; there are %d permits", len(holding), e.at, alone, limit), all...)
		}
	}
}
