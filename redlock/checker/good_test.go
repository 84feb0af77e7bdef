package checker

import (
	"slices"
	"strings"
	"testing"
)

type goodHistory struct {
	name    string
	history History
}

func goodHistories() []goodHistory {
	return slices.Concat(goodLeases(), goodExtends(), goodReleases(), goodFences())
}

func goodLeases() []goodHistory {
	return []goodHistory{
		{"nothing happened", nil},
		{"one grant", History{acq("a", 0, 1, 100)}},
		{"expiry, then another", History{acq("a", 0, 1, 100), acq("b", 102, 103, 100)}},
		{"a grant at the very deadline", History{acq("a", 0, 1, 100), acq("b", 50, 101, 100)}},
		{"release, then another", History{acq("a", 0, 1, 100), rel1("a", 10, 11), acq("b", 12, 13, 100)}},
		{"granted while the release was under way", History{acq("a", 0, 1, 100), rel1("a", 10, 20), acq("b", 11, 12, 100)}},
		{"requested early, granted when the holder released", History{acq("a", 0, 1, 100), acq("b", 2, 12, 100), rel1("a", 10, 11)}},
		{"requested at once, one refused", History{acq("a", 0, 10, 100), no(acq("b", 0, 10, 0))}},
		{"refused although free", History{no(acq("a", 0, 1, 0))}},
		{"different keys at once", History{acq("a", 0, 1, 100), on("j", acq("b", 0, 1, 100))}},
		{"an unknown acquire that never took effect", History{unknown(acq("a", 0, 1, 0)), acq("b", 2, 3, 100)}},
		{"an unknown acquire within another's lease", History{acq("a", 0, 1, 100), unknown(acq("b", 2, 3, 0)), rel1("a", 50, 51)}},
		{"an acquire without token or answer", History{{Op: Acquire, Key: "k", Complete: Never, Outcome: Unknown}, acq("b", 2, 3, 100)}},
		{"an answer too late to be relied on", History{acq("a", 0, 200, -50), acq("b", 150, 160, 100)}},
		{"the same token again while it holds", History{acq("a", 0, 1, 100), acq("a", 50, 51, 100), acq("b", 152, 153, 10)}},
		{"the same token again by another client", History{acq("a", 0, 1, 100), by(3, acq("a", 50, 51, 100)), by(3, rel1("a", 60, 61)), acq("b", 62, 63, 10)}},
		{"a grant that began when its time was over, behind an extended lease", History{acq("b", 0, 1, 8), ext("b", 6, 8, 1), acq("a", 0, 10, -5), acq("c", 20, 21, 5)}},
		{"a release in between two overlapping grants of one token", History{acq("a", 0, 9, 20), by(3, acq("a", 0, 10, 100)), by(4, rel1("a", 0, 8)), ext("a", 10, 11, 15), acq("b", 40, 41, 5)}},
		{"a first answer that comes after the lease was over", History{acq("a", 0, 100, -20), acq("b", 60, 61, 30), rel0("a", 110, 111)}},
	}
}

func goodExtends() []goodHistory {
	return []goodHistory{
		{"a chain of extends, then expiry, then another", History{acq("a", 0, 1, 10), ext("a", 5, 6, 10), ext("a", 12, 13, 10), ext("a", 20, 21, 10), acq("b", 32, 33, 10)}},
		{"an extend to less", History{acq("a", 0, 1, 100), ext("a", 10, 11, 5), acq("b", 101, 102, 10)}},
		{"an extend answered past the old deadline", History{acq("a", 0, 1, 10), ext("a", 9, 15, 10), acq("b", 26, 27, 10)}},
		{"an extend sent past the deadline that no other token used", History{acq("a", 0, 1, 10), ext("a", 30, 31, 10)}},
		{"a refused extend", History{acq("a", 0, 1, 10), no(ext("a", 20, 21, 0)), acq("b", 22, 23, 10)}},
		{"an unknown extend, then another", History{acq("a", 0, 1, 10), unknown(ext("a", 5, 6, 0)), acq("b", 12, 13, 10)}},
		{"an unknown acquire proved by an extend", History{unknown(acq("a", 0, 1, 0)), ext("a", 5, 6, 10), acq("b", 20, 21, 10)}},
		{"an unknown acquire that won after another's lease", History{unknown(acq("a", 0, 1, 0)), acq("b", 5, 6, 10), ext("a", 20, 21, 10)}},
		{"an extend that overlaps the release it lost to", History{acq("a", 0, 1, 100), ext("a", 10, 20, 100), rel1("a", 11, 19), acq("b", 25, 26, 10)}},
		{"an extend after a release that was not answered", History{acq("a", 0, 1, 100), unknown(rel1("a", 5, 6)), ext("a", 10, 11, 100)}},
		{"granted again with the same token after a loss, then extended", History{acq("a", 0, 1, 10), acq("b", 20, 21, 5), acq("a", 30, 31, 10), ext("a", 35, 36, 10)}},
		{"extended by another client", History{acq("a", 0, 1, 100), by(4, ext("a", 50, 51, 100)), acq("b", 152, 153, 10)}},
		{"extended before the grant was answered", History{acq("a", 0, 20, 80), by(4, ext("a", 10, 11, 89)), acq("b", 101, 102, 10)}},
		{"extended after the quick lease of an earlier request", History{acq("a", 0, 20, 10), acq("b", 0, 10, 8), ext("a", 25, 26, 10)}},
	}
}

func goodReleases() []goodHistory {
	return []goodHistory{
		{"not held past the deadline", History{acq("a", 0, 1, 10), rel0("a", 20, 21)}},
		{"released past the deadline, no other token had taken it", History{acq("a", 0, 1, 10), rel1("a", 20, 21)}},
		{"not held, answered just past the deadline", History{acq("a", 0, 1, 10), rel0("a", 10, 11)}},
		{"not held, because released before", History{acq("a", 0, 1, 100), rel1("a", 10, 11), rel0("a", 20, 21)}},
		{"two releases at once, both answered 1", History{acq("a", 0, 1, 100), rel1("a", 10, 20), rel1("a", 11, 19)}},
		{"two releases at once, both answered 0", History{acq("a", 0, 1, 100), rel0("a", 10, 20), rel0("a", 11, 19)}},
		{"not held, because an unknown release arrived first", History{acq("a", 0, 1, 100), unknown(rel1("a", 10, 11)), rel0("a", 20, 21)}},
		{"an unknown release that arrives much later", History{acq("a", 0, 1, 100), unknown(rel1("a", 10, 11)), rel1("a", 50, 51), acq("b", 52, 53, 10)}},
		{"an unknown release ends the certain time", History{acq("a", 0, 1, 100), never(rel1("a", 10, 11)), acq("b", 12, 13, 100)}},
		{"an unknown release arrives after the token's next grant", History{acq("a", 0, 1, 100), never(rel1("a", 5, 6)), acq("a", 20, 21, 100), acq("b", 30, 31, 10)}},
		{"released, though the acquire was never answered", History{unknown(acq("a", 0, 1, 0)), rel1("a", 5, 6)}},
		{"released twice, the acquire took effect late", History{never(acq("a", 0, 1, 0)), rel1("a", 5, 6), rel1("a", 10, 11)}},
		{"not held, never granted", History{rel0("a", 0, 1), acq("b", 0, 1, 10)}},
		{"released and granted again, twice", History{acq("a", 0, 1, 100), rel1("a", 2, 3), acq("a", 4, 5, 100), rel1("a", 6, 7), acq("b", 8, 9, 10)}},
		{"a release that overlaps its grant", History{acq("a", 0, 10, 100), by(3, rel1("a", 5, 15)), acq("b", 20, 21, 10)}},
		{"not held, sent before the grant was answered", History{acq("a", 0, 10, 100), by(3, rel0("a", 5, 15))}},
	}
}

func goodFences() []goodHistory {
	return []goodHistory{
		{"fences rise", History{fenced(5, "a", 0, 1, 10), fenced(6, "b", 20, 21, 10), fenced(60, "c", 40, 41, 10)}},
		{"the same fences on two keys", History{fenced(5, "a", 0, 1, 10), on("j", fenced(5, "b", 20, 21, 10))}},
		{"overlapping requests in either order", History{fenced(9, "a", 0, 20, -5), fenced(8, "b", 10, 30, 10)}},
		{"repeats that overlap share a fence", History{fenced(5, "a", 0, 10, 100), by(3, fenced(5, "a", 5, 15, 100))}},
		{"repeats that overlap swap theirs", History{fenced(6, "a", 0, 10, 100), by(3, fenced(5, "a", 5, 15, 100))}},
		{"grants without fences in between", History{fenced(5, "a", 0, 1, 10), acq("b", 20, 21, 10), acq("c", 40, 41, 10), fenced(6, "d", 60, 61, 10)}},
	}
}

func TestCheck_AcceptsEveryGoodHistory(t *testing.T) {
	all := goodHistories()
	if len(all) < 20 {
		t.Fatalf("%d good histories, want at least 20", len(all))
	}
	for _, good := range all {
		t.Run(strings.ReplaceAll(good.name, " ", "_"), func(t *testing.T) {
			if err := Check(good.history); err != nil {
				t.Error(err)
			}
		})
	}
}
