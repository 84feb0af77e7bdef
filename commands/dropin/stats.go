// Statistics of commands and scripts from clients that use redlockd as one Redis:
// how many there are and how long they take. Counted by the library whose script it
// is, and by what it does to a lock.

package dropin

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// plainCommands is the library of commands without a script.
	plainCommands = "commands"
	// byBehaviour is the library of scripts that are in no table: recognised by what
	// they do, or by --script-class.
	byBehaviour = "unnamed"
	// firstBucketBits: bucket i of a histogram ends at 2⁶⁺ⁱ µs, from 64 µs to 8.4 s.
	firstBucketBits = 6
	timeBuckets     = 18
)

// Stat counts one operation of one library.
type Stat struct {
	Library, Operation string
	Yes, No, Undecided int64               // it took effect, it did not, it is undecided
	Times              [timeBuckets]uint64 // see Bound
	Sum                time.Duration       // of all times
}

// Bound returns the end of bucket i of Times; what lasts longer is in the last one.
func Bound(i int) time.Duration { return time.Microsecond << (firstBucketBits + i) }

func (s *Stat) Count() int64 { return s.Yes + s.No + s.Undecided }

// Quantile is the end of the bucket that holds the given part of all times.
func (s *Stat) Quantile(part float64) time.Duration {
	var all, seen uint64
	for _, n := range s.Times {
		all += n
	}
	for i, n := range s.Times {
		if seen += n; all > 0 && float64(seen) >= part*float64(all) {
			return Bound(i)
		}
	}
	return 0
}

// counterName names one counter: there are as many as libraries in the table and
// words of commands, so their number is bounded.
type counterName struct{ library, operation string }

type counter struct {
	mu   sync.Mutex
	stat Stat
}

// Stats count for one daemon. The zero value is ready.
type Stats struct {
	CachedScripts atomic.Int64 // texts that are kept for EVALSHA

	mu sync.RWMutex
	by map[counterName]*counter
}

func (s *Stats) of(library, does string) *counter {
	if library == "" {
		library = byBehaviour
	}
	id := counterName{library, does}
	s.mu.RLock()
	one := s.by[id]
	s.mu.RUnlock()
	if one != nil {
		return one
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by == nil {
		s.by = make(map[counterName]*counter)
	}
	if s.by[id] == nil {
		s.by[id] = &counter{stat: Stat{Library: library, Operation: does}}
	}
	return s.by[id]
}

// Stopwatch runs from the moment a command was read to its outcome.
type Stopwatch struct {
	counter *counter
	began   time.Time
}

// Start starts one; Count gets later what it counts.
func Start() Stopwatch { return Stopwatch{began: time.Now()} }

// Timed starts one for a command without a script.
func (s *Stats) Timed(operation string) Stopwatch {
	return Stopwatch{s.of(plainCommands, operation), time.Now()}
}

// Count sets what the stopwatch counts; without it Stop panics.
func (s *Stopwatch) Count(f *Stats, library, operation string) { s.counter = f.of(library, operation) }

// Stop notes the outcome.
func (s Stopwatch) Stop(yes bool, err error) {
	took, c := time.Since(s.began), s.counter
	us := uint64(max(took, 0) / time.Microsecond)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err != nil:
		c.stat.Undecided++
	case yes:
		c.stat.Yes++
	default:
		c.stat.No++
	}
	c.stat.Times[min(max(bits.Len64(us)-firstBucketBits, 0), timeBuckets-1)]++
	c.stat.Sum += took
}

// List are all of them, in the order of their names.
func (s *Stats) List() []Stat {
	s.mu.RLock()
	defer s.mu.RUnlock()
	list := make([]Stat, 0, len(s.by))
	for _, one := range s.by {
		one.mu.Lock()
		list = append(list, one.stat)
		one.mu.Unlock()
	}
	slices.SortFunc(list, func(a, b Stat) int {
		return cmp.Or(strings.Compare(a.Library, b.Library), strings.Compare(a.Operation, b.Operation))
	})
	return list
}
