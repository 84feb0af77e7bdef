// refusals finds keys that have refused for longer than any lease lasts. Such a key may hold
// another application's data, which a plain SET NX does not distinguish from a lock. So the try
// that was refused is sent once more, with the script that looks at the key: data that is no
// lock is ErrWrongType. A lock that was renewed, or taken again and again, costs one such look
// for each of these times. A try that is granted costs nothing.

package lease

import (
	"hash/maphash"
	"sync/atomic"
	"time"
)

// refusalSlots bounds the keys that are remembered. Of two that share a slot, each makes the
// daemon forget the other; its tries are then refused as before.
const refusalSlots = 1024

// refusals has, for a key in its slot, a hash of it and when it began to refuse, in ms.
type refusals struct {
	seed    maphash.Seed
	longest uint32 // ms that a copy can last
	slots   [refusalSlots]atomic.Uint64
}

// newRefusals adds a second to the longest lease, for the clocks.
func newRefusals(longestLease time.Duration) *refusals {
	return &refusals{seed: maphash.MakeSeed(), longest: uint32((longestLease + time.Second).Milliseconds())}
}

// last notes a refusal. It reports whether the key has refused for longer than any lease lasts;
// then its time begins anew.
func (r *refusals) last(db int, key string, now time.Duration) bool {
	slot, hash := r.slotOf(db, key)
	began, ms := slot.Load(), uint32(now.Milliseconds())
	known := uint32(began>>32) == hash
	if known && ms-uint32(began) <= r.longest {
		return false
	}
	slot.Store(uint64(hash)<<32 | uint64(ms))
	return known
}

// holdsNoLock notes that a look found data: from now on every refused try looks at the key.
func (r *refusals) holdsNoLock(db int, key string, now time.Duration) {
	slot, hash := r.slotOf(db, key)
	slot.Store(uint64(hash)<<32 | uint64(uint32(now.Milliseconds())-r.longest-1))
}

func (r *refusals) slotOf(db int, key string) (slot *atomic.Uint64, hash uint32) {
	hash = max(uint32(maphash.String(r.seed, key))+uint32(db)*refusalSlots, 1) // 0 is an empty slot
	return &r.slots[hash%refusalSlots], hash
}
