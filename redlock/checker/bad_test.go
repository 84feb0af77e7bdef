package checker

import (
	"math"
	"slices"
	"strings"
	"testing"
)

type badHistory struct {
	name    string
	rules   string // initials: E exclusion, L linearizability, F fence, R release truth, C continuity
	history History
}

var ruleOfInitial = map[rune]string{
	'E': ruleExclusion, 'L': ruleLinear, 'F': ruleFence, 'R': ruleRelease, 'C': ruleContinuity,
}

func badHistories() []badHistory {
	return slices.Concat(overlaps(), crowds(), overlapsDespiteReleases(), brokenExtends(), lyingReleases(), wrongFences())
}

func overlaps() []badHistory {
	return []badHistory{
		{"two grants at once", "EL", History{acq("a", 0, 1, 100), acq("b", 10, 11, 100)}},
		{"the same, recorded in reverse order", "EL", History{acq("b", 10, 11, 100), acq("a", 0, 1, 100)}},
		{"two requests overlap and both win", "EL", History{acq("a", 0, 10, 100), acq("b", 1, 9, 100)}},
		{"two requests at the same instants both win", "EL", History{acq("a", 0, 10, 100), acq("b", 0, 10, 100)}},
		{"a grant one millisecond before the deadline", "EL", History{acq("a", 0, 1, 100), acq("b", 90, 100, 100)}},
		{"a short lease inside a long one", "EL", History{acq("a", 0, 1, 1000), acq("b", 10, 11, 1)}},
		{"a slow winner whose lease begins inside another's", "EL", History{acq("a", 0, 50, 100), acq("b", 0, 10, 100)}},
		{"the third of three", "EL", History{acq("a", 0, 1, 10), acq("b", 20, 21, 10), acq("c", 25, 26, 10)}},
		{"the first and the last of three, around one that was refused", "EL", History{acq("a", 0, 1, 100), no(acq("b", 10, 11, 0)), acq("c", 20, 21, 10)}},
		{"three at once", "EL", History{acq("a", 0, 1, 100), acq("b", 2, 3, 100), acq("c", 4, 5, 100)}},
		{"on the second of two keys", "EL", History{on("j", acq("a", 0, 1, 100)), acq("a", 0, 1, 100), acq("b", 2, 3, 100)}},
		{"a long lease after a released one, and a late grant inside it", "EL", History{acq("a", 0, 1, 100), rel1("a", 5, 6), acq("b", 10, 11, 500), acq("c", 400, 401, 10)}},
		{"a lease that never ends", "EL", History{{Client: 0, Op: Acquire, Key: "k", Token: "a", Complete: ms(1), Outcome: OK, Validity: math.MaxInt64}, acq("b", 1e6, 1e6+1, 10)}},
		{"one client with two tokens", "EL", History{acq("a", 0, 1, 100), by(0, acq("b", 2, 3, 100))}},
		{"a repeat by the same token hides no other token", "EL", History{acq("a", 0, 1, 100), acq("a", 50, 51, 100), acq("b", 120, 121, 100)}},
		{"a token is granted again while another holds", "EL", History{acq("a", 0, 1, 10), acq("b", 20, 21, 100), acq("a", 30, 31, 10)}},
	}
}

func overlapsDespiteReleases() []badHistory {
	return []badHistory{
		{"granted before the holder's release was sent", "ELR", History{acq("a", 0, 1, 100), acq("b", 10, 11, 100), rel1("b", 12, 13), rel1("a", 20, 21)}},
		{"granted before the holder's unanswered release was sent", "EL", History{acq("a", 0, 1, 100), acq("b", 10, 11, 5), unknown(rel1("a", 20, 21))}},
		{"another token's release frees nothing", "ELR", History{acq("a", 0, 1, 100), rel1("c", 5, 6), acq("b", 10, 11, 10)}},
		{"a refused release of another token frees nothing", "EL", History{acq("a", 0, 1, 100), rel0("c", 5, 6), acq("b", 10, 11, 10)}},
		{"a release on another key frees nothing", "ELR", History{acq("a", 0, 1, 100), on("j", rel1("a", 5, 6)), acq("b", 10, 11, 10)}},
		{"a release answered before the token's second grant does not end it", "EL",
			History{acq("a", 0, 1, 100), rel1("a", 5, 6), acq("a", 10, 11, 100), acq("b", 20, 21, 10)}},
		{"the next holder released, the first did not", "EL", History{acq("a", 0, 1, 100), acq("b", 10, 11, 100), rel1("b", 12, 13)}},
		{"granted and released in no time within another's lease", "L", History{acq("a", 0, 1, 100), acq("b", 10, 11, 100), rel1("b", 11, 12)}},
		{"two waiters get what one release freed", "EL", History{acq("a", 0, 1, 100), acq("b", 2, 12, 100), acq("c", 2, 12, 100), rel1("a", 10, 11)}},
	}
}

func brokenExtends() []badHistory {
	return []badHistory{
		{"granted within the extended time", "EL", History{acq("a", 0, 1, 100), ext("a", 50, 51, 100), acq("b", 120, 121, 10)}},
		{"granted within the time of a chain of extends", "EL", History{acq("a", 0, 1, 10), ext("a", 5, 6, 10), ext("a", 11, 12, 10), ext("a", 18, 19, 10), acq("b", 25, 26, 10)}},
		{"an extend to less shortens nothing", "EL", History{acq("a", 0, 1, 100), ext("a", 10, 11, 5), acq("b", 50, 51, 10)}},
		{"extended within another's lease", "ELC", History{acq("a", 0, 1, 10), acq("b", 20, 21, 100), ext("a", 30, 31, 10)}},
		{"extended after another came and went", "LC", History{acq("a", 0, 1, 10), acq("b", 20, 21, 5), ext("a", 40, 41, 10)}},
		{"extended after another came and released", "LC", History{acq("a", 0, 1, 10), acq("b", 20, 21, 100), rel1("b", 25, 26), ext("a", 40, 41, 10)}},
		{"extended after another came, with a fence", "LC", History{fenced(1, "a", 0, 1, 10), fenced(2, "b", 20, 21, 5), ext("a", 40, 41, 10)}},
		{"extended across another's lease that began with an earlier request", "LC", History{acq("a", 0, 10, 5), acq("b", 5, 20, 5), ext("a", 30, 31, 10)}},
		{"extended after the holder's release was answered", "LC", History{acq("a", 0, 1, 100), rel1("a", 10, 11), ext("a", 20, 21, 100)}},
		{"extended after a release answered 0 past the deadline", "LC", History{acq("a", 0, 1, 10), rel0("a", 20, 21), ext("a", 30, 31, 100)}},
		{"extended without a grant", "LC", History{ext("a", 0, 1, 100)}},
		{"extended after a refusal", "LC", History{no(acq("a", 0, 1, 0)), ext("a", 2, 3, 100)}},
		{"extended with the token of another key", "LC", History{on("j", acq("a", 0, 1, 100)), ext("a", 2, 3, 100)}},
		{"extended before the first request", "LC", History{ext("a", 0, 1, 5), acq("a", 20, 21, 5)}},
		{"a new client extends what the old one lost", "LC", History{acq("a", 0, 1, 10), acq("b", 20, 21, 5), by(7, ext("a", 40, 41, 10))}},
		{"two tokens extend in turn", "ELC", History{acq("a", 0, 1, 20), acq("b", 30, 31, 20), ext("a", 35, 36, 20), ext("b", 40, 41, 20)}},
		{"an unknown acquire is extended within another's lease", "EL", History{unknown(acq("a", 0, 1, 0)), acq("b", 10, 11, 100), ext("a", 20, 21, 100)}},
		{"another's unknown release does not excuse an extend after the loss", "LC",
			History{acq("a", 0, 1, 10), acq("b", 20, 21, 100), unknown(rel1("b", 30, 31)), ext("a", 40, 41, 10)}},
		{"extended within another's lease while its acquire is under way", "EL", History{acq("b", 0, 1, 100), acq("a", 5, 20, 10), ext("a", 10, 11, 10)}},
		{"an empty lease of another still ends one's own", "LC", History{acq("a", 0, 1, 10), acq("b", 20, 30, -1), ext("a", 40, 41, 10)}},
	}
}

func lyingReleases() []badHistory {
	return []badHistory{
		{"released without a grant", "R", History{rel1("a", 0, 1)}},
		{"released after a refusal", "R", History{no(acq("a", 0, 1, 0)), rel1("a", 2, 3)}},
		{"released before the first request", "R", History{rel1("a", 0, 1), acq("a", 10, 11, 100)}},
		{"released by another client's wrong token", "R", History{acq("a", 0, 1, 100), rel1("b", 2, 3)}},
		{"released twice", "R", History{acq("a", 0, 1, 100), rel1("a", 10, 11), rel1("a", 20, 21)}},
		{"released twice past the deadline", "R", History{acq("a", 0, 1, 10), rel1("a", 20, 21), rel1("a", 30, 31)}},
		{"released three times for two grants", "R", History{acq("a", 0, 1, 100), rel1("a", 5, 6), acq("a", 10, 11, 100), rel1("a", 15, 16), rel1("a", 20, 21)}},
		{"released after another got it", "R", History{acq("a", 0, 1, 10), acq("b", 20, 21, 100), rel1("a", 30, 31)}},
		{"released after another came and released", "R", History{acq("a", 0, 1, 10), acq("b", 20, 21, 100), rel1("b", 30, 31), rel1("a", 40, 41)}},
		{"released after another got it, behind an extend that was answered late", "R", History{acq("a", 0, 1, 10), acq("b", 20, 30, 5), ext("a", 21, 40, -15), rel1("a", 50, 51)}},
		{"released after another got it, behind an extend that was answered in time", "R", History{acq("a", 0, 1, 10), acq("b", 20, 30, 5), ext("a", 22, 25, 1), rel1("a", 50, 51)}},
		{"released after another extended it", "R", History{acq("a", 0, 1, 10), unknown(acq("b", 5, 6, 0)), ext("b", 20, 21, 10), rel1("a", 40, 41)}},
		{"not held in the middle of a lease", "R", History{acq("a", 0, 1, 100), rel0("a", 10, 11)}},
		{"not held, said as a refusal", "R", History{acq("a", 0, 1, 100), no(rel0("a", 10, 11))}},
		{"not held one millisecond before the deadline", "R", History{acq("a", 0, 1, 100), rel0("a", 50, 100)}},
		{"not held within the extended time", "R", History{acq("a", 0, 1, 10), ext("a", 5, 6, 100), rel0("a", 50, 51)}},
		{"not held after a second grant", "R", History{acq("a", 0, 1, 100), rel1("a", 2, 3), acq("a", 10, 11, 100), rel0("a", 20, 21)}},
		{"not held although the unknown release came later", "R", History{acq("a", 0, 1, 100), rel0("a", 10, 11), unknown(rel1("a", 20, 21))}},
		{"not held, then held", "R", History{acq("a", 0, 1, 100), rel0("a", 10, 11), rel1("a", 20, 21)}},
	}
}

func wrongFences() []badHistory {
	return []badHistory{
		{"one fence for two tokens", "F", History{fenced(7, "a", 0, 1, 10), fenced(7, "b", 20, 21, 10)}},
		{"one fence for two overlapping requests", "FEL", History{fenced(7, "a", 0, 10, 10), fenced(7, "b", 5, 15, 10)}},
		{"a step back", "F", History{fenced(8, "a", 0, 1, 10), fenced(7, "b", 20, 21, 10)}},
		{"a step back behind a lower one", "F", History{fenced(9, "a", 0, 1, 10), fenced(3, "b", 20, 21, 10), fenced(10, "c", 40, 41, 10)}},
		{"a step back two grants later", "F", History{fenced(5, "a", 0, 1, 10), fenced(9, "b", 20, 21, 10), fenced(7, "c", 40, 41, 10)}},
		{"a repeat that was requested after the answer keeps its fence", "F", History{fenced(5, "a", 0, 1, 100), fenced(5, "a", 10, 11, 100)}},
		{"a repeat that was requested after the answer steps back", "F", History{fenced(5, "a", 0, 1, 100), fenced(4, "a", 10, 11, 100)}},
		{"a step back past a grant without a fence", "F", History{fenced(5, "a", 0, 1, 10), acq("b", 20, 21, 10), fenced(4, "c", 40, 41, 10)}},
		{"a step back after a lease that began too late", "F", History{fenced(5, "a", 0, 30, -5), fenced(4, "b", 40, 41, 10)}},
		{"a shared fence among three, two of one token", "F", History{fenced(5, "a", 0, 10, 5), fenced(5, "a", 1, 10, 5), fenced(5, "b", 20, 21, 10)}},
		{"a step back on the second key", "F", History{on("j", fenced(1, "a", 0, 1, 10)), fenced(5, "a", 0, 1, 10), fenced(4, "b", 20, 21, 10)}},
		{"a step back behind the higher of two that overlapped", "F", History{fenced(20, "a", 0, 1, 2), fenced(8, "b", 0, 5, 5), fenced(10, "c", 20, 21, 5)}},
		{"a shared fence among three that overlap, two of one token", "F", History{fenced(5, "a", 0, 10, 5), fenced(5, "a", 1, 10, 5), fenced(5, "b", 9, 20, 5)}},
		{"a step back after a release", "F", History{fenced(5, "a", 0, 1, 1000), rel1("a", 2, 3), fenced(4, "b", 4, 5, 10)}},
	}
}

func TestCheck_RejectsEveryBadHistoryByTheRuleItBreaks(t *testing.T) {
	all := badHistories()
	if len(all) < 50 {
		t.Fatalf("%d bad histories, want at least 50", len(all))
	}
	for _, bad := range all {
		t.Run(strings.ReplaceAll(bad.name, " ", "_"), func(t *testing.T) {
			var want []string
			for _, initial := range bad.rules {
				want = append(want, ruleOfInitial[initial])
			}
			slices.Sort(want)
			err := Check(bad.history)
			if got := rulesBroken(err); !slices.Equal(got, want) {
				t.Errorf("rules broken: %q, want %q; verdict:\n%v", got, want, err)
			}
		})
	}
}
