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
// counts on a copy which it finds moves it: to the next value ≡ 4, or one further if it ends
// there already; a reader that becomes the writer, to the next ≡ 2. A copy that gets another
// value ends at one ≡ 6. The undo of a ballot deletes only a copy that ends at the ballot's own
// expiry, or 1 ms before (before Redis 7.0, some are read so). So it can never delete a copy that
// it made and that a later ballot counts on. Which copies it has made, it knows from their masters,
// or by a token that no other request has (lease/undo.go).
const (
	ExpiryGrain     = 8
	ProlongedOffset = 4
	ReplacedOffset  = 6
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
