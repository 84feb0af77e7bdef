// Fence clock: a source of numbers, each larger than every number drawn or seen before.

package clock

// Hybrid is the clock from which fences are drawn: the median of the masters' clocks
// in microseconds, but never at or below anything drawn or seen before. A value
// seen on a master is followed without a bound: bounding it was simulated and
// cost a third of the grants. It is below 2⁵³, where Lua and zset scores stop
// being exact, until the year 2255.
type Hybrid struct {
	last int64 // highest given
	Seen int64 // highest register read under a good seal
}

// Tick draws a number above all earlier ones; median is the masters' time in µs.
func (h *Hybrid) Tick(median int64) int64 {
	h.last = max(median, h.last+1, h.Seen+1)
	return h.last
}

// Observe raises Seen to a register that was read under a good seal.
func (h *Hybrid) Observe(register int64) { h.Seen = max(h.Seen, register) }
