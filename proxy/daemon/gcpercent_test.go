package daemon

import "testing"

func TestMemory_SmallHeapsGrowToTheFloorAndLargeOnesAsGoHasIt(t *testing.T) {
	const busy = 100 << 20 // bytes in a second
	for live, want := range map[uint64]int{
		0: 400, 1 << 20: 400, heapFloor / 5: 400, heapFloor / 4: 300, heapFloor / 3: 200,
		heapFloor / 2: 100, heapFloor: 100, 100 * heapFloor: 100,
	} {
		got := percentFor(live, busy)
		if got != want {
			t.Errorf("%d bytes in use: %d %%, want %d", live, got, want)
		}
		if goal := live + live*uint64(got)/100; got > defaultPercent && goal > heapFloor {
			t.Errorf("%d bytes in use may grow to %d, the floor is %d", live, goal, heapFloor)
		}
	}
}

// A heap above the floor grows little while little is allocated.
func TestMemory_HeapsGrowAsFastAsTheDaemonAllocates(t *testing.T) {
	for perSecond, want := range map[float64]int{0: 25, 1 << 20: 25, 49 << 20: 25, 50 << 20: 50, 76 << 20: 75, 1 << 40: 100} {
		for _, live := range []uint64{heapFloor, 36 << 20, 1 << 30} {
			if got := percentFor(live, perSecond); got != want {
				t.Errorf("%d bytes in use and %.0f in a second: %d %%, want %d", live, perSecond, got, want)
			}
		}
		if got := percentFor(heapFloor/4, perSecond); got != 300 {
			t.Errorf("%d bytes in use and %.0f in a second: %d %%, want 300", heapFloor/4, perSecond, got)
		}
	}
}
