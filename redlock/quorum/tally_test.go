package quorum

import "testing"

// pureOutcome is what the votes mean once all of them are there.
func pureOutcome(n, quorum, yes, no int) Result {
	switch {
	case yes >= quorum:
		return Granted
	case no >= quorum:
		return Refused
	case yes+no >= quorum:
		return Split
	}
	return Unknown
}

// pureOutcomes are the outcomes that the answers still to come allow.
func pureOutcomes(n, quorum, yes, no, pending int) map[Result]bool {
	out := map[Result]bool{}
	for moreYes := 0; moreYes <= pending; moreYes++ {
		for moreNo := 0; moreYes+moreNo <= pending; moreNo++ {
			out[pureOutcome(n, quorum, yes+moreYes, no+moreNo)] = true
		}
	}
	return out
}

func TestTally_DecidesAsSoonAsNothingCanChangeTheOutcomeAndNeverEarlier(t *testing.T) {
	for _, n := range []int{3, 4, 5, 6, 7, 8, 9} {
		for yes := 0; yes <= n; yes++ {
			for no := 0; yes+no <= n; no++ {
				for silent := 0; yes+no+silent <= n; silent++ {
					votes := Tally{N: n, Quorum: n/2 + 1, Yes: yes, No: no, Uncounted: silent}
					possible := pureOutcomes(n, votes.Quorum, yes, no, votes.Pending())
					want := Undecided
					for only := range possible {
						// An unknown outcome waits for the last answer, to say how many answered.
						if len(possible) == 1 && (only != Unknown || votes.Pending() == 0) {
							want = only
						}
					}
					if got := votes.Result(); got != want {
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
	for _, n := range []int{3, 4, 5, 6, 7, 8, 9} {
		paths := 0
		var walk func(votes Tally, said Result)
		walk = func(votes Tally, said Result) {
			v := votes.Result()
			if said != Undecided && v != said {
				t.Fatalf("%+v: %d after %d", votes, v, said)
			}
			if votes.Pending() == 0 {
				paths++
				if v == Undecided {
					t.Fatalf("%+v: Undecided with nothing to come", votes)
				}
				return
			}
			for i := range 3 {
				next := votes
				*[]*int{&next.Yes, &next.No, &next.Uncounted}[i]++
				walk(next, v)
			}
		}
		walk(Tally{N: n, Quorum: n/2 + 1}, Undecided)
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
	votes := Tally{N: 5, Quorum: 3, Yes: 1, No: 2, Uncounted: 1}
	if votes.Answered() != 3 || votes.Pending() != 1 {
		t.Errorf("answered %d, pending %d, want 3 and 1", votes.Answered(), votes.Pending())
	}
}
