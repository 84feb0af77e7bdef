package daemon

import "testing"

func TestMemory_SmallHeapsGrowToTheFloorAndLargeOnesAsGoHasIt(t *testing.T) {
	for live, want := range map[uint64]int{
		0: 400, 1 << 20: 400, heapFloor / 5: 400, heapFloor / 4: 300, heapFloor / 3: 200,
		heapFloor / 2: 100, heapFloor: 100, largeHeap: 100, 100 * heapFloor: 100,
	} {
		got := percentFor(live)
		if got != want {
			t.Errorf("%d bytes in use: %d %%, want %d", live, got, want)
		}
		if goal := live + live*uint64(got)/100; got > defaultPercent && goal > heapFloor {
			t.Errorf("%d bytes in use may grow to %d, the floor is %d", live, goal, heapFloor)
		}
	}
}

// What clients that read nothing keep live, some 36 MB, takes little more of the machine.
func TestMemory_HeapsOfMediumSizeGrowLess(t *testing.T) {
	last := uint64(0)
	for live := uint64(heapFloor); live <= largeHeap; live += 1 << 20 {
		percent := uint64(percentFor(live))
		goal := live + live*percent/100
		if live <= 38<<20 && goal > smallHeap {
			t.Errorf("%d MB in use may grow to %d MB, at most %d are allowed", live>>20, goal>>20, smallHeap>>20)
		}
		if live > 38<<20 && (percent < minPercent || goal < last) {
			t.Errorf("%d MB in use: %d %%, after a smaller heap had a goal of %d MB", live>>20, percent, last>>20)
		}
		last = goal
	}
}
