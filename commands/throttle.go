// How often may one address guess passwords?
package commands

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	// failuresPerSecond are forgiven to one address; as many may come at once.
	// Somebody who guesses gets less than a million tries a day.
	failuresPerSecond = 10
	// mostAddresses are remembered one by one, some 100 bytes each. Should more
	// than these fail within a second, the rest share one bucket.
	mostAddresses = 10_000
)

// bucket holds tokens that come back with time. The zero value is full.
type bucket struct {
	used float64 // tokens missing at last
	last time.Time
}

// missing is how many tokens are gone by now.
func (b *bucket) missing(now time.Time, perSecond float64) float64 {
	return max(0, b.used-max(0, now.Sub(b.last).Seconds())*perSecond)
}

// take removes a token, if there is a whole one.
func (b *bucket) take(now time.Time, perSecond float64) bool {
	used := b.missing(now, perSecond) + 1
	if used > perSecond {
		return false
	}
	b.used, b.last = used, now
	return true
}

// throttle counts failed logins by address. The zero value is ready.
type throttle struct {
	wrong    atomic.Int64 // passwords looked at that were not right
	unlooked atomic.Int64 // logins refused without a look at the password

	mu      sync.Mutex
	buckets map[string]*bucket
	rest    bucket
}

// allows tells whether an address may try; it takes nothing. Its no is the
// login's refusal and counted as such.
func (t *throttle) allows(address string, now time.Time) bool {
	if t.hasRoom(address, now) {
		return true
	}
	t.unlooked.Add(1)
	return false
}

func (t *throttle) hasRoom(address string, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.buckets[address]
	if b == nil && len(t.buckets) >= mostAddresses {
		b = &t.rest
	}
	return b == nil || b.missing(now, failuresPerSecond)+1 <= failuresPerSecond
}

// failed takes a token of an address.
func (t *throttle) failed(address string, now time.Time) {
	t.wrong.Add(1)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bucketLocked(address, now).take(now, failuresPerSecond)
}

func (t *throttle) bucketLocked(address string, now time.Time) *bucket {
	if b := t.buckets[address]; b != nil {
		return b
	}
	if t.buckets == nil {
		t.buckets = make(map[string]*bucket)
	}
	if len(t.buckets) >= mostAddresses {
		// Full buckets are as good as none. Were the sweep done for every new
		// address, a flood of them would cost more than it should.
		if t.rest.missing(now, failuresPerSecond) == 0 {
			for old, b := range t.buckets {
				if b.missing(now, failuresPerSecond) == 0 {
					delete(t.buckets, old)
				}
			}
		}
		if len(t.buckets) >= mostAddresses {
			return &t.rest
		}
	}
	b := new(bucket)
	t.buckets[address] = b
	return b
}
