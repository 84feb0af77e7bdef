package daemon

import "testing"

func TestMemory_SmallHeapsGrowToTheFloorAndLargeOnesAsGoHasIt(t *testing.T) {
	for live, want := range map[uint64]int{
		0: 400, 1 << 20: 400, heapFloor / 5: 400, heapFloor / 4: 300, heapFloor / 3: 200,
		heapFloor / 2: 100, heapFloor: 100, 100 * heapFloor: 100,
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
