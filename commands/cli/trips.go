// Trips: the round trips to a master since the last refresh.

package cli

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// tripCounts are numbers of round trips, by the end of their bucket in µs.
type tripCounts map[int64]uint64

// newTripCounts takes a field of DMASTERS: "20:3 25:1".
func newTripCounts(text string) tripCounts {
	all := tripCounts{}
	for part := range strings.FieldsSeq(text) {
		bound, count, _ := strings.Cut(part, ":")
		us, err1 := strconv.ParseInt(bound, 10, 64)
		n, err2 := strconv.ParseUint(count, 10, 64)
		if err1 == nil && err2 == nil {
			all[us] = n
		}
	}
	return all
}

// since returns the round trips after an earlier reading of the same daemon.
func (c tripCounts) since(before tripCounts) tripCounts {
	later := tripCounts{}
	for us, n := range c {
		if earlier := before[us]; n > earlier {
			later[us] = n - earlier
		}
	}
	return later
}

// quantile is the end of the bucket that holds the given part, for people.
func (c tripCounts) quantile(part float64) string {
	all := uint64(0)
	for _, n := range c {
		all += n
	}
	rank, seen := uint64(part*float64(max(all, 1)-1))+1, uint64(0)
	for _, us := range slices.Sorted(maps.Keys(c)) {
		if seen += c[us]; seen >= rank {
			return fields{"": us}.micros("")
		}
	}
	return "–"
}
