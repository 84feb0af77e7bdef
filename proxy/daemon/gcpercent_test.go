package daemon

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"

	"redlockd/redlock"
)

func TestMemory_SmallHeapsGrowToTheFloorAndLargeOnesAsGoHasIt(t *testing.T) {
	const busy = 100 << 20 // bytes in a second
	for live, want := range map[uint64]int{
		0: 400, 1 << 20: 400, heapFloor / 5: 400, heapFloor / 4: 300, heapFloor / 3: 200,
		heapFloor / 2: 100, heapFloor: 100, 100 * heapFloor: 100,
	} {
		got := percentFor(live, busy, 0)
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
			if got := percentFor(live, perSecond, 0); got != want {
				t.Errorf("%d bytes in use and %.0f in a second: %d %%, want %d", live, perSecond, got, want)
			}
		}
		if got := percentFor(heapFloor/4, perSecond, 0); got != 300 {
			t.Errorf("%d bytes in use and %.0f in a second: %d %%, want 300", heapFloor/4, perSecond, got)
		}
	}
}

// A heap grows by what the locks granted in a second allocate, whatever else is allocated.
func TestMemory_HeapsGrowByWhatGrantsAllocate(t *testing.T) {
	for _, c := range []struct {
		live    uint64
		grants  float64
		percent int
	}{
		{10 << 20, 1000, 125}, {10 << 20, 10_000, 375}, {10 << 20, 100_000, 400}, {heapFloor, 1000, 75}, {heapFloor, 10_000, 250},
		{100 << 20, 100, 25}, {100 << 20, 10_000, 125}, {1 << 30, 10_000, 25},
	} {
		if got := percentFor(c.live, 0, c.grants); got != c.percent {
			t.Errorf("%d bytes in use and %.0f grants in a second: %d %%, want %d", c.live, c.grants, got, c.percent)
		}
	}
}

// granting is a locker that grants a million locks between two collections.
type granting struct{ grants int64 }

func (g *granting) Counters() redlock.Counters {
	g.grants += 1e6
	var c redlock.Counters
	c.Acquired = g.grants
	return c
}

func TestMemory_PercentageFollowsTheGrantsUntilTheEnd(t *testing.T) {
	t.Setenv("GOGC", "")
	defer debug.SetGCPercent(debug.SetGCPercent(defaultPercent))
	percent := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	live := make([]byte, 4*heapFloor)
	adaptGCPercent(t.Context(), new(granting))
	eventually(t, "the heap may grow for the grants", func() bool {
		runtime.GC()
		metrics.Read(percent)
		return percent[0].Value.Uint64() > defaultPercent
	}, func() string { return "" })
	runtime.KeepAlive(live)
}
