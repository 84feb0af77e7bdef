// Statistics of commands and scripts from clients that use redlockd as one Redis:
// how many there are and how long they take. Counted by the library whose script it
// is, and by what it does to a lock.

package commands

import (
	"cmp"
	"fmt"
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

// DropinStat is what was counted of one operation of one library.
type DropinStat struct {
	Library, Operation string
	Yes, No, Undecided int64               // it took effect, it did not, it is undecided
	Times              [timeBuckets]uint64 // see DropinBound
	Sum                time.Duration       // of all times
}

// DropinBound is where bucket i of Times ends; what lasts longer is in the last one.
func DropinBound(i int) time.Duration { return time.Microsecond << (firstBucketBits + i) }

// Count is the number of all.
func (f *DropinStat) Count() int64 { return f.Yes + f.No + f.Undecided }

// Quantile is the end of the bucket that holds the given part of all times.
func (f *DropinStat) Quantile(part float64) time.Duration {
	var all, seen uint64
	for _, n := range f.Times {
		all += n
	}
	for i, n := range f.Times {
		if seen += n; all > 0 && float64(seen) >= part*float64(all) {
			return DropinBound(i)
		}
	}
	return 0
}

// dropinOperation names one counter: there are as many as libraries in the table and
// words of commands, so their number is bounded.
type dropinOperation struct{ library, operation string }

// dropinCounter counts while others read.
type dropinCounter struct {
	yes, no, undecided atomic.Int64
	sum                atomic.Int64
	times              [timeBuckets]atomic.Uint64
}

// dropinCounters are those of one daemon. The zero value is ready.
type dropinCounters struct {
	mu sync.RWMutex
	by map[dropinOperation]*dropinCounter
}

// of finds or makes a counter.
func (f *dropinCounters) of(library, does string) *dropinCounter {
	if library == "" {
		library = byBehaviour
	}
	id := dropinOperation{library, does}
	f.mu.RLock()
	one := f.by[id]
	f.mu.RUnlock()
	if one != nil {
		return one
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.by == nil {
		f.by = make(map[dropinOperation]*dropinCounter)
	}
	if f.by[id] == nil {
		f.by[id] = new(dropinCounter)
	}
	return f.by[id]
}

// stopwatch runs from the moment a command was read to its outcome.
type stopwatch struct {
	counter *dropinCounter
	began   time.Time
}

// timed starts one for a command without a script.
func (t *Table) timed(does string) stopwatch {
	return stopwatch{t.dropinStats.of(plainCommands, does), time.Now()}
}

// stop notes the outcome.
func (w stopwatch) stop(yes bool, err error) {
	took, f := time.Since(w.began), w.counter
	switch {
	case err != nil:
		f.undecided.Add(1)
	case yes:
		f.yes.Add(1)
	default:
		f.no.Add(1)
	}
	us := uint64(max(took, 0) / time.Microsecond)
	f.times[min(max(bits.Len64(us)-firstBucketBits, 0), timeBuckets-1)].Add(1)
	f.sum.Add(int64(took))
}

// DropinStats are all of them, in the order of their names.
func (t *Table) DropinStats() []DropinStat {
	t.dropinStats.mu.RLock()
	defer t.dropinStats.mu.RUnlock()
	list := make([]DropinStat, 0, len(t.dropinStats.by))
	for id, f := range t.dropinStats.by {
		one := DropinStat{
			Library: id.library, Operation: id.operation, Yes: f.yes.Load(), No: f.no.Load(), Undecided: f.undecided.Load(),
			Sum: time.Duration(f.sum.Load()),
		}
		for i := range f.times {
			one.Times[i] = f.times[i].Load()
		}
		list = append(list, one)
	}
	slices.SortFunc(list, func(a, b DropinStat) int {
		return cmp.Or(strings.Compare(a.Library, b.Library), strings.Compare(a.Operation, b.Operation))
	})
	return list
}

// infoDropin shows a line for each.
func infoDropin(p *infoPage, t *Table, _ *Call) {
	for _, f := range t.DropinStats() {
		name := strings.Map(func(r rune) rune {
			if r == ' ' || r == ':' {
				return '_'
			}
			return r
		}, f.Library+"_"+f.Operation)
		p.line("dropin_"+name, fmt.Sprintf("calls=%d,yes=%d,no=%d,undecided=%d,p50_us=%d,p99_us=%d",
			f.Count(), f.Yes, f.No, f.Undecided, f.Quantile(.5).Microseconds(), f.Quantile(.99).Microseconds()))
	}
}
