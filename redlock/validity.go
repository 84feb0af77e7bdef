// How long may the caller believe in its lease, and when does a copy end?
package redlock

import "time"

// drift is what is taken off every lease: 1 % for clocks that run at different
// rates and 2 ms for the masters' expiry granularity.
func drift(ttl time.Duration) time.Duration { return ttl/100 + 2*time.Millisecond }

// deadline is when the lease ends for its holder, counted from before the
// first command of the attempt was sent.
func deadline(start, ttl time.Duration) time.Duration { return start + ttl - drift(ttl) }

// Expiries are in milliseconds of the master's clock. Their residue modulo 8
// tells what wrote them: an attempt creates copies that end at a multiple of 8;
// whatever prolongs a copy that is already there moves it to the next value ≡ 4.
// The undo of an attempt deletes only what ends within 1 ms of its own expiry,
// so it can never take a copy that a later attempt counts on.
const (
	grain    = 8
	prolongs = 4
)

// expiry is where an attempt's copies end on a master whose clock shows now µs:
// ttl later, plus late, so that a copy which arrives up to late after it was
// written still lives for the whole ttl.
func expiry(now int64, ttl, late time.Duration) int64 {
	end := now/1000 + (ttl + late).Milliseconds() + 1
	return (end + grain - 1) / grain * grain
}

// healed is where a copy ends that is re-created for a lease that has left of
// its time.
func healed(now int64, left, late time.Duration) int64 { return expiry(now, left, late) + prolongs }
