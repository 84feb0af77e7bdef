// Slots of permits: which one an acquire requests first, and which one next.

package lease

import (
	"fmt"
	"slices"

	"redlockd/redlock/engine"
)

// firstSlot is chosen by the token. Requests that arrive together through several daemons
// thus rarely try the same slot, and a repeat finds its own.
func firstSlot(token engine.Token, limit int) int {
	return int(fnv1a(fnvBasis, string(token))%uint32(limit)) + 1
}

// mostCounted is the value that was counted most often. Among several it is a random one:
// requests that contend for the last slots must not choose alike.
func mostCounted(of map[int]int, draw func(int) int) (what, times int) {
	var best []int
	for one, n := range of {
		if n > times {
			best, times = best[:0], n
		}
		if n == times {
			best = append(best, one)
		}
	}
	if len(best) == 0 {
		return 0, 0
	}
	slices.Sort(best)
	return best[draw(len(best))], times
}

// OtherLimit means that most masters hold the key for another number of permits.
type OtherLimit struct {
	Key          engine.Key
	Asked, Limit int
}

func (e *OtherLimit) Error() string {
	return fmt.Sprintf("LIMIT %d was asked for '%s', which is held with LIMIT %d: all users of a key must give the same number, another number only while the key is free",
		e.Asked, e.Key, e.Limit)
}
