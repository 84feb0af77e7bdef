package redlock

import "testing"

// pureOutcome is what the votes mean once all of them are there.
func pureOutcome(n, quorum, yes, no int) ballotResult {
	switch {
	case yes >= quorum:
		return granted
	case n-no < quorum: // no quorum is left that has not refused
		return refused
	case yes+no >= quorum:
		return split
	}
	return unknown
}

// pureOutcomes are the outcomes that the answers still to come allow.
func pureOutcomes(n, quorum, yes, no, pending int) map[ballotResult]bool {
	out := map[ballotResult]bool{}
	for moreYes := 0; moreYes <= pending; moreYes++ {
		for moreNo := 0; moreYes+moreNo <= pending; moreNo++ {
			out[pureOutcome(n, quorum, yes+moreYes, no+moreNo)] = true
		}
	}
	return out
}

func TestTally_DecidesAsSoonAsNothingCanChangeTheOutcomeAndNeverEarlier(t *testing.T) {
	for _, n := range []int{3, 5, 7, 9} {
		for yes := 0; yes <= n; yes++ {
			for no := 0; yes+no <= n; no++ {
				for silent := 0; yes+no+silent <= n; silent++ {
					votes := tally{n: n, quorum: n/2 + 1, yes: yes, no: no, uncounted: silent}
					possible := pureOutcomes(n, votes.quorum, yes, no, votes.pending())
					want := undecided
					for only := range possible {
						// An unknown outcome waits for the last answer, to say how many answered.
						if len(possible) == 1 && (only != unknown || votes.pending() == 0) {
							want = only
						}
					}
					if got := votes.result(); got != want {
						t.Errorf("%+v: verdict %d, want %d (possible %v)", votes, got, want, possible)
					}
				}
			}
		}
	}
}

// Every order of answers is a path through the tallies above; on none of them a
// verdict is followed by another one.
func TestTally_NeverContradictsItselfInAnyOrderOfAnswers(t *testing.T) {
	for _, n := range []int{3, 5, 7, 9} {
		paths := 0
		var walk func(votes tally, said ballotResult)
		walk = func(votes tally, said ballotResult) {
			v := votes.result()
			if said != undecided && v != said {
				t.Fatalf("%+v: %d after %d", votes, v, said)
			}
			if votes.pending() == 0 {
				paths++
				if v == undecided {
					t.Fatalf("%+v: undecided with nothing to come", votes)
				}
				return
			}
			for i := range 3 {
				next := votes
				*[]*int{&next.yes, &next.no, &next.uncounted}[i]++
				walk(next, v)
			}
		}
		walk(tally{n: n, quorum: n/2 + 1}, undecided)
		want := 1
		for range n {
			want *= 3
		}
		if paths != want {
			t.Errorf("%d orders of %d answers, want %d", paths, n, want)
		}
	}
}

func TestTally_CountsWhatAnswered(t *testing.T) {
	votes := tally{n: 5, quorum: 3, yes: 1, no: 2, uncounted: 1}
	if votes.answered() != 3 || votes.pending() != 1 {
		t.Errorf("answered %d, pending %d, want 3 and 1", votes.answered(), votes.pending())
	}
}
