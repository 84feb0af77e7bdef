package checker

// The rule of exclusion: no two tokens hold one key at the same time. It walks the
// leases of a key in the order of their beginning, which takes O(n log n).

import "fmt"

// CheckExclusion reports leases of different tokens on one key that overlap. A
// lease runs from the answer of an acquire to its deadline or to the invocation
// of a release by its token, whichever is first; a successful extend moves the
// deadline out. Leases that only touch do not overlap.
func CheckExclusion(h History) error {
	return checkRules(h, rule{ruleExclusion, (*keyRecord).exclusion})
}

// exclusion compares each lease with the one of those before it that ends last.
// That is enough: leases of one token are disjoint, and had two earlier leases
// of different tokens both been running, they would have been reported.
func (k *keyRecord) exclusion(f *findings) {
	var longest *leaseSpan
	leases := k.leases()
	for i := range leases {
		next := &leases[i]
		if longest != nil && next.from < longest.end && next.first.Token != longest.first.Token {
			until := min(next.end, longest.end)
			f.add(fmt.Sprintf("%q and %q both hold it for %v, over %s", longest.first.Token, next.first.Token,
				until-next.from, span(next.from, until)), append(longest.events(), next.events()...)...)
		}
		if longest == nil || next.end > longest.end {
			longest = next
		}
	}
}
