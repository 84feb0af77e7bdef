package slots

import (
	"fmt"
	"slices"
	"testing"
)

// homeOf is the home of each slot.
func homeOf(t *testing.T, ranges []Range, daemons []string) (of [Count]string) {
	t.Helper()
	next := 0
	for _, h := range Homes(ranges, daemons) {
		if h.First != next || h.Last < h.First || !slices.Contains(daemons, h.Daemon) {
			t.Fatalf("%v follows slot %d", h, next-1)
		}
		for next = h.First; next <= h.Last; next++ {
			of[next] = h.Daemon
		}
	}
	if next != Count {
		t.Fatalf("the last slot is %d", next-1)
	}
	return of
}

func addresses(n int) (daemons []string) {
	for i := range n {
		daemons = append(daemons, fmt.Sprintf("10.0.0.%d:7379", i+1))
	}
	return daemons
}

func TestHomes_EveryDaemonHasItsShare(t *testing.T) {
	thirds := []Range{{0, 5460}, {5461, 10922}, {10923, 16383}}
	for _, ranges := range [][]Range{All(), thirds} {
		for _, n := range []int{1, 2, 3, 7, 46} {
			daemons, load := addresses(n), map[string]int{}
			for _, d := range homeOf(t, ranges, daemons) {
				load[d]++
			}
			for _, d := range daemons {
				if load[d] > Count/n+pieceSlots || n < 10 && load[d] < Count/n*3/4 {
					t.Errorf("%d ranges, %d daemons: %s has %d slots", len(ranges), n, d, load[d])
				}
			}
		}
	}
}

// A daemon that goes, and comes back, moves few slots between the others.
func TestHomes_AreTheSameEverywhereAndMoveLittle(t *testing.T) {
	daemons := addresses(8)
	before := homeOf(t, All(), daemons)
	reversed := slices.Clone(daemons)
	slices.Reverse(reversed)
	if homeOf(t, All(), reversed) != before {
		t.Error("the order in which daemons are known decides")
	}
	after, moved := homeOf(t, All(), daemons[1:]), 0
	for slot, d := range before {
		if d != daemons[0] && after[slot] != d {
			moved++
		}
	}
	t.Logf("%d of %d slots moved between daemons that stayed", moved, Count)
	if moved > Count/5 {
		t.Errorf("%d slots moved between daemons that stayed", moved)
	}
}

func TestHomes_OfNobodyAreNone(t *testing.T) {
	if homes := Homes(nil, addresses(2)); homes != nil {
		t.Error(homes)
	}
}
