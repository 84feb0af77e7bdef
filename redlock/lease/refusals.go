// refusals finds keys that have refused for longer than any lease lasts. Such a key may hold
// another application's data, which a plain SET NX does not distinguish from a lock. So the try
// that was refused is sent once more, with the script that looks at the key: data that is no
// lock is ErrWrongType. A lock that was renewed, or taken again and again, costs one such look
// for each of these times. A try that is granted costs nothing.

package lease

import (
	"strconv"
	"sync/atomic"
	"time"
)

// refusalSlots bounds the keys that are remembered. Of two that share a slot, each makes the
// daemon forget the other; its tries are then refused as before.
const refusalSlots = 1024

// refusals has, for a key in its slot, a hash of it and when it began to refuse, in ms.
type refusals [refusalSlots]atomic.Uint64

// refusesLong notes a refusal. It reports whether the key has refused for longer than any lease
// lasts; then its time begins anew.
func (l *Leases) refusesLong(r *LockRequest) bool {
	slot, hash := l.refusalsOf(r)
	began, now := slot.Load(), uint32(l.engine.Recent().Milliseconds())
	known := uint32(began>>32) == hash
	if known && now-uint32(began) <= l.longestLease() {
		return false
	}
	slot.Store(uint64(hash)<<32 | uint64(now))
	return known
}

// holdsNoLock notes that a look found data: from now on every refused try looks at the key.
func (l *Leases) holdsNoLock(r *LockRequest) {
	slot, hash := l.refusalsOf(r)
	slot.Store(uint64(hash)<<32 | uint64(uint32(l.engine.Recent().Milliseconds())-l.longestLease()-1))
}

// longestLease is how long a copy can last, in ms, with a second for the clocks.
func (l *Leases) longestLease() uint32 {
	return uint32((l.engine.MaxTTL + l.engine.Late + time.Second).Milliseconds())
}

func (l *Leases) refusalsOf(r *LockRequest) (slot *atomic.Uint64, hash uint32) {
	hash = max(fnv1a(fnv1a(l.hot.seed, string(r.Key)), strconv.Itoa(r.DB)), 1) // 0 is an empty slot
	return &l.refusals[hash%refusalSlots], hash
}
