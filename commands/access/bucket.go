// bucket is a rate: tokens that come back with time.

package access

import "time"

// Bucket holds tokens that come back with time. The zero value is full.
type Bucket struct {
	used float64 // tokens missing at last
	last time.Time
}

// missing is how many tokens are gone by now.
func (b *Bucket) missing(now time.Time, perSecond float64) float64 {
	return max(0, b.used-max(0, now.Sub(b.last).Seconds())*perSecond)
}

// Take removes a token, if there is a whole one.
func (b *Bucket) Take(now time.Time, perSecond float64) bool {
	used := b.missing(now, perSecond) + 1
	if used > perSecond {
		return false
	}
	b.used, b.last = used, now
	return true
}
