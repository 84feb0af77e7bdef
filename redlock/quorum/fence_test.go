package quorum

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// pureVoters draws intervals whose tops are never below the proposal, as the
// pool promises; a third of the time they are, as after a bounded flush.
func pureVoters(r *rand.Rand, n int) (voters []Interval, proposal int64) {
	proposal = 1 + r.Int64N(30)
	for range n {
		low := r.Int64N(30)
		voters = append(voters, Interval{Low: low, Top: max(low, proposal) + r.Int64N(4)})
	}
	if r.IntN(3) == 0 {
		for i := range voters {
			voters[i].Top = voters[i].Low + r.Int64N(8)
		}
	}
	return voters, proposal
}

// pureHolds counts the intervals a fence lies in.
func pureHolds(voters []Interval, fence int64) (n int) {
	for _, v := range voters {
		if v.Low < fence && fence <= v.Top {
			n++
		}
	}
	return n
}

func TestFit_ReturnsTheSmallestFenceAtOrAboveTheProposalThatAQuorumOwns(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	found, missed := 0, 0
	for range 200_000 {
		n := []int{3, 5, 7, 9}[r.IntN(4)]
		quorum := n/2 + 1
		voters, proposal := pureVoters(r, r.IntN(n+1))
		fence, ok := fit(voters, quorum, proposal)
		if len(voters) < quorum {
			if ok {
				t.Fatalf("%v: a fence from fewer voters than a quorum of %d", voters, quorum)
			}
			continue
		}
		var lows []int64
		topsReach := true
		for _, v := range voters {
			lows = append(lows, v.Low)
			topsReach = topsReach && v.Top >= proposal
		}
		slices.Sort(lows)
		if want := max(proposal, lows[quorum-1]+1); fence != want {
			t.Fatalf("%v, proposal %d: fence %d, want %d", voters, proposal, fence, want)
		}
		if ok != (pureHolds(voters, fence) >= quorum) {
			t.Fatalf("%v: fence %d fits: %v, but %d intervals hold it", voters, fence, ok, pureHolds(voters, fence))
		}
		if !ok {
			missed++
		} else {
			found++
		}
		if !topsReach {
			continue
		}
		// The lemma: with the proposal below every top, a smaller fence that a
		// quorum owns implies that this one is owned, too.
		for smaller := int64(1); smaller < fence; smaller++ {
			if !ok && pureHolds(voters, smaller) >= quorum {
				t.Fatalf("%v, proposal %d: %d fits and %d does not", voters, proposal, smaller, fence)
			}
			if ok && smaller >= proposal && pureHolds(voters, smaller) >= quorum {
				t.Fatalf("%v, proposal %d: %d is chosen although %d fits", voters, proposal, fence, smaller)
			}
		}
	}
	if found == 0 || missed == 0 {
		t.Errorf("%d fits and %d misses: the draw is one-sided", found, missed)
	}
}

func TestFit_ChangesNothingOfTheVoters(t *testing.T) {
	voters := []Interval{{Low: 9, Top: 12}, {Low: 3, Top: 12}, {Low: 7, Top: 12}}
	before := slices.Clone(voters)
	if fence, ok := fit(voters, 2, 1); fence != 8 || !ok {
		t.Errorf("%d, %v, want 8", fence, ok)
	}
	if !slices.Equal(voters, before) {
		t.Errorf("voters are %v, were %v", voters, before)
	}
}

// pureFencing is a Fencing with these intervals.
func pureFencing(proposal int64, voters ...Interval) *Fencing {
	f := &Fencing{Proposal: proposal}
	for lane, v := range voters {
		f.Voted(Interval{Lane: lane, Incarnation: "l", Low: v.Low, Top: v.Top})
	}
	return f
}

func TestFencing_OneMoreSealSufficesWhenNoVoterFails(t *testing.T) {
	f := pureFencing(5, Interval{Low: 0, Top: 5}, Interval{Low: 9, Top: 9}, Interval{Low: 10, Top: 10})
	fence, raise, hopeless := f.Choose(3, 0)
	if fence != 0 || hopeless || !slices.Equal(raise, []int{0, 1, 2}) {
		t.Fatalf("%d, %v, %v, want all three to be raised", fence, raise, hopeless)
	}
	for lane := range 3 {
		if lane > 0 {
			if fence, raise, hopeless = f.Choose(3, 0); fence != 0 || len(raise) > 0 || hopeless {
				t.Fatalf("%d, %v, %v while seals are under way", fence, raise, hopeless)
			}
		}
		f.Raised(Interval{Lane: lane, Incarnation: "l", Top: 20}, true)
	}
	if fence, _, _ = f.Choose(3, 0); fence != 11 {
		t.Errorf("fence %d, want 11: above every old register", fence)
	}
}

func TestFencing_AVoterThatComesLaterIsRaisedToo(t *testing.T) {
	f := pureFencing(5, Interval{Low: 0, Top: 5}, Interval{Low: 9, Top: 9})
	f.Choose(2, 1)
	f.Voted(Interval{Lane: 4, Incarnation: "l", Low: 7, Top: 7})
	if _, raise, _ := f.Choose(2, 0); !slices.Equal(raise, []int{4}) {
		t.Errorf("raise %v, want lane 4", raise)
	}
	if _, raise, _ := f.Choose(2, 0); len(raise) != 0 {
		t.Errorf("raise %v, want nothing twice", raise)
	}
}

func TestFencing_ASealOfAnotherMemoryOrABadOneRaisesNothing(t *testing.T) {
	for _, seal := range []struct {
		of   Interval
		good bool
	}{{Interval{Incarnation: "other", Top: 99}, true}, {Interval{Incarnation: "l", Top: 99}, false}, {}} {
		f := pureFencing(1, Interval{Low: 0, Top: 5}, Interval{Low: 9, Top: 9})
		f.Choose(2, 0)
		f.Raised(seal.of, seal.good)
		if f.voters[0].Top != 5 {
			t.Errorf("%+v lifted the top to %d", seal, f.voters[0].Top)
		}
	}
	f := pureFencing(1, Interval{Low: 0, Top: 5}, Interval{Low: 9, Top: 9})
	f.Choose(2, 0)
	f.Raised(Interval{Incarnation: "l", Top: 3}, true)
	if f.voters[0].Top != 5 {
		t.Errorf("a lower register lowered the top to %d", f.voters[0].Top)
	}
}

func TestFencing_GivesUpAfterItsRoundsAndOnlyOnceEveryVoteIsIn(t *testing.T) {
	f := pureFencing(1, Interval{Low: 0, Top: 5}, Interval{Low: 9, Top: 9})
	rounds := 0
	for {
		fence, raise, hopeless := f.Choose(2, 1)
		if fence != 0 || hopeless {
			t.Fatalf("%d, %v", fence, hopeless)
		}
		if len(raise) == 0 {
			break
		}
		rounds++
		for _, lane := range raise {
			f.Raised(Interval{Lane: lane}, false)
		}
	}
	if rounds != maxRounds {
		t.Errorf("%d rounds, want %d", rounds, maxRounds)
	}
	if _, _, hopeless := f.Choose(2, 0); !hopeless {
		t.Error("goes on hoping with every vote in")
	}
}
