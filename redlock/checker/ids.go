package checker

// The rules of ids: ids are handed out once and in order. They concern a counter
// rather than a lock, and are the same two rules as those of fences.

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// Range is one answered request for ids: First, First+1 … First+Count−1 of the
// counter Name. Requests without an answer need not be recorded.
type Range struct {
	Client   int
	Name     string
	First    int64
	Count    int64
	Invoke   time.Duration
	Complete time.Duration
}

func (r *Range) last() int64 { return r.First + r.Count - 1 }

// String shows the range in one line, as errors do.
func (r *Range) String() string {
	return fmt.Sprintf("client %d got %d..%d of %q at %s", r.Client, r.First, r.last(), r.Name, span(r.Invoke, r.Complete))
}

// CheckIDs reports ids of one counter given out twice, and ids that are not
// above every id answered before they were requested. O(n log n), exact.
func CheckIDs(ranges []Range) error {
	names := map[string][]*Range{}
	var order []string
	for i := range ranges {
		r := &ranges[i]
		if r.Count < 1 || r.First > math.MaxInt64-(r.Count-1) || r.Invoke < 0 || r.Complete < r.Invoke {
			return fmt.Errorf("checker: %w: range %d: first %d, count %d, at %s: want count >= 1, ids up to 2^63-1 and 0 <= invoke <= complete",
				ErrMalformed, i, r.First, r.Count, span(r.Invoke, r.Complete))
		}
		if names[r.Name] == nil {
			order = append(order, r.Name)
		}
		names[r.Name] = append(names[r.Name], r)
	}
	f := &findings{rule: ruleIDs}
	for _, name := range order {
		f.key = name
		distinctIDs(names[name], f)
		risingIDs(names[name], f)
	}
	return f.err()
}

func distinctIDs(ranges []*Range, f *findings) {
	slices.SortStableFunc(ranges, func(a, b *Range) int { return cmp.Compare(a.First, b.First) })
	highest := ranges[0]
	for _, r := range ranges[1:] {
		if r.First <= highest.last() {
			f.add(fmt.Sprintf("id %d was given out twice: %v; %v", r.First, highest, r))
		}
		if r.last() > highest.last() {
			highest = r
		}
	}
}

func risingIDs(ranges []*Range, f *findings) {
	answered := slices.Clone(ranges)
	slices.SortStableFunc(answered, func(a, b *Range) int { return cmp.Compare(a.Complete, b.Complete) })
	slices.SortStableFunc(ranges, func(a, b *Range) int { return cmp.Compare(a.Invoke, b.Invoke) })
	var highest *Range
	next := 0
	for _, r := range ranges {
		for ; answered[next].Complete < r.Invoke; next++ {
			if highest == nil || answered[next].last() > highest.last() {
				highest = answered[next]
			}
		}
		if highest != nil && highest.last() >= r.First {
			f.add(fmt.Sprintf("id %d was requested after id %d had been answered: %v; %v", r.First, highest.last(), highest, r))
		}
	}
}
