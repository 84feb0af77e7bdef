// The times of a lease: how long a caller may rely on its lease, and when a copy ends.

package quorum

import "time"

// Drift is subtracted from every lease: 1 % for clocks that run at different rates and 2
// ms for the masters' expiry granularity.
func Drift(ttl time.Duration) time.Duration { return ttl/100 + 2*time.Millisecond }

// Deadline is when the lease ends for its holder, counted from before the first command
// of the ballot was sent.
func Deadline(start, ttl time.Duration) time.Duration { return start + ttl - Drift(ttl) }

// Expiries are in milliseconds of the master's clock. Their residue modulo 8 shows which
// command wrote them. A ballot creates copies that end at a multiple of 8. A command that
// prolongs an existing copy moves it to the next value ≡ 4. The undo of a ballot deletes
// only a copy that ends within 1 ms of the ballot's own expiry, so it can never delete a
// copy that a later ballot counts on.
const (
	ExpiryGrain     = 8
	ProlongedOffset = 4
)

// Expiry is where a ballot's copies end on a master whose clock shows now µs. It is ttl
// later, plus late, so that a copy which arrives up to late after it was written still
// lives for the whole ttl.
func Expiry(now int64, ttl, late time.Duration) int64 {
	end := now/1000 + (ttl + late).Milliseconds() + 1
	return (end + ExpiryGrain - 1) / ExpiryGrain * ExpiryGrain
}

// RepairedExpiry is where a copy ends that is re-created for a lease with this remaining
// time.
func RepairedExpiry(now int64, left, late time.Duration) int64 {
	return Expiry(now, left, late) + ProlongedOffset
}
