package checker

import (
	"strings"
	"testing"
)

// crowds are overlaps with more going on around them: others come, go, are
// refused, repeat and wait while two hold the lock.
func crowds() []badHistory {
	return []badHistory{
		{"the last of five in a row is early", "EL", History{acq("a", 0, 1, 10), acq("b", 20, 21, 10), acq("c", 40, 41, 10), acq("d", 60, 61, 10), acq("e", 65, 66, 10)}},
		{"the first of five in a row never went", "EL", History{acq("a", 0, 1, 1000), acq("b", 20, 21, 10), acq("c", 40, 41, 10), acq("d", 60, 61, 10), acq("e", 80, 81, 10)}},
		{"four waiters, two served by one release", "EL", History{acq("a", 0, 1, 100), acq("b", 5, 55, 100), acq("c", 6, 56, 100), no(acq("d", 7, 57, 0)), no(acq("e", 8, 58, 0)), rel1("a", 50, 51)}},
		{"refused and at once granted beside the holder", "EL", History{acq("a", 0, 1, 100), no(acq("b", 5, 6, 0)), acq("b", 7, 8, 10)}},
		{"granted beside the holder and then refused", "EL", History{acq("a", 0, 1, 100), acq("b", 5, 6, 10), no(acq("c", 7, 8, 0))}},
		{"a second holder between two repeats", "EL", History{acq("a", 0, 1, 100), acq("b", 30, 31, 10), acq("a", 60, 61, 100)}},
		{"a second holder while the first repeats", "EL", History{acq("a", 0, 1, 100), acq("a", 30, 40, 100), acq("b", 32, 33, 5)}},
		{"a second holder in a lease that an extension doubled", "EL", History{acq("a", 0, 1, 50), ext("a", 40, 41, 50), acq("b", 80, 81, 50)}},
		{"a second holder, and the first extends beside it", "ELC", History{acq("a", 0, 1, 50), acq("b", 10, 11, 50), ext("a", 20, 21, 50)}},
		{"two extend the lease they both have", "ELC", History{acq("a", 0, 1, 50), acq("b", 10, 11, 50), ext("a", 20, 21, 50), ext("b", 30, 31, 50)}},
		{"after a release that was refused", "EL", History{acq("a", 0, 1, 100), no(rel0("z", 5, 6)), acq("b", 10, 11, 20)}},
		{"after two releases of strangers", "EL", History{acq("a", 0, 1, 100), rel0("y", 5, 6), rel0("z", 7, 8), acq("b", 10, 11, 20)}},
		{"after an extension of unknown outcome", "EL", History{acq("a", 0, 1, 100), unknown(ext("a", 5, 6, 0)), acq("b", 10, 11, 20)}},
		{"after an extension that was refused", "EL", History{acq("a", 0, 1, 100), no(ext("a", 5, 6, 0)), acq("b", 10, 11, 20)}},
		{"beside a request that is never answered", "EL", History{acq("a", 0, 1, 100), never(acq("c", 2, 3, 0)), acq("b", 10, 11, 20)}},
		{"beside a grant on another key that ended", "EL", History{on("j", acq("a", 0, 1, 10)), on("j", rel1("a", 5, 6)), acq("a", 0, 1, 100), acq("b", 10, 11, 20)}},
		{"with fences in order", "EL", History{fenced(1, "a", 0, 1, 100), fenced(2, "b", 10, 11, 100), fenced(3, "c", 120, 121, 10)}},
		{"with fences in order and a release after it", "ELR", History{fenced(1, "a", 0, 1, 100), fenced(2, "b", 10, 11, 50), rel1("b", 20, 21), rel1("a", 30, 31)}},
		{"in the second life of a token", "EL", History{acq("a", 0, 1, 100), rel1("a", 5, 6), acq("a", 10, 11, 100), acq("b", 50, 51, 20)}},
		{"in the third life of a token", "EL", History{acq("a", 0, 1, 10), acq("a", 20, 21, 10), acq("a", 40, 41, 10), acq("b", 45, 46, 3)}},
		{"by one microsecond's worth of a lease", "EL", History{acq("a", 0, 1, 2), acq("b", 1, 2, 2)}},
	}
}

// Both checks of exclusion, the sweep over intervals and the search for an
// order, have been shown enough bad histories to be believed.
func TestCheck_EachCheckOfExclusionRejectsAtLeastFifty(t *testing.T) {
	for initial, check := range map[string]func(History) error{
		"E": CheckExclusion, "L": func(h History) error { return linear(h, searchBounds{}) },
	} {
		shown := 0
		for _, bad := range badHistories() {
			if !strings.Contains(bad.rules, initial) {
				continue
			}
			shown++
			if check(bad.history) == nil {
				t.Errorf("rule %s accepts: %s", initial, bad.name)
			}
		}
		if shown < 50 {
			t.Errorf("rule %s was shown %d bad histories, want at least 50", initial, shown)
		}
	}
}
