package slots

import (
	"fmt"
	"slices"
	"testing"
)

// homeOf is the home of each slot.
func homeOf(t *testing.T, groups []Ranges, daemons []string) (of [Count]string) {
	t.Helper()
	next := 0
	for _, h := range Homes(groups, daemons) {
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
	thirds := []Ranges{{{0, 5460}}, {{5461, 10922}}, {{10923, 16383}}}
	for _, groups := range [][]Ranges{{All()}, thirds, equal(4), equal(65)} {
		for _, n := range []int{1, 2, 3, 7, 46} {
			daemons, load := addresses(n), map[string]int{}
			for _, d := range homeOf(t, groups, daemons) {
				load[d]++
			}
			for _, d := range daemons {
				if load[d] > Count/n+pieceSlots || n < 10 && load[d] < Count/n*3/4 {
					t.Errorf("%d groups, %d daemons: %s has %d slots", len(groups), n, d, load[d])
				}
			}
		}
	}
}

// equal are n groups with as many slots each.
func equal(n int) (groups []Ranges) {
	for i := range n {
		groups = append(groups, Ranges{{i * Count / n, (i+1)*Count/n - 1}})
	}
	return groups
}

// Every further daemon of a group makes the batches to its masters shorter.
func TestHomes_AGroupHasFewDaemons(t *testing.T) {
	split := []Ranges{{{0, 99}, {8192, 16383}}, {{100, 8191}}}
	for _, test := range []struct {
		groups        []Ranges
		daemons, most int // pairs of a group and one of its daemons
	}{
		{equal(2), 2, 2}, {equal(4), 4, 4}, {equal(4), 2, 4}, {equal(2), 4, 4}, {equal(1), 7, 7}, {equal(65), 46, 65 + 45}, {equal(4), 6, 4 + 2*6}, {split, 2, 3},
	} {
		of, pairs := homeOf(t, test.groups, addresses(test.daemons)), map[string]bool{}
		for i, g := range test.groups {
			for _, r := range g {
				for slot := r.First; slot <= r.Last; slot++ {
					pairs[fmt.Sprint(i, " ", of[slot])] = true
				}
			}
		}
		t.Logf("%d groups, %d daemons: %d pairs", len(test.groups), test.daemons, len(pairs))
		if len(pairs) > test.most {
			t.Errorf("%d groups, %d daemons: %d pairs of a group and a daemon, want at most %d", len(test.groups), test.daemons, len(pairs), test.most)
		}
	}
}

// A daemon that goes, and comes back, moves few slots between the others.
func TestHomes_AreTheSameEverywhereAndMoveLittle(t *testing.T) {
	daemons := addresses(8)
	before := homeOf(t, []Ranges{All()}, daemons)
	reversed := slices.Clone(daemons)
	slices.Reverse(reversed)
	if homeOf(t, []Ranges{All()}, reversed) != before {
		t.Error("the order in which daemons are known decides")
	}
	after, moved := homeOf(t, []Ranges{All()}, daemons[1:]), 0
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
