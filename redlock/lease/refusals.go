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

	"redlockd/redlock/engine"
)

// refusalSlots bounds the keys that are remembered. Of two that share a slot, each makes the
// daemon forget the other; its tries are then refused as before.
const refusalSlots = 1024

// refusals has, for a key in its slot, a hash of it and when it began to refuse, in ms.
type refusals struct {
	engine *engine.Engine
	seed   uint32
	slots  [refusalSlots]atomic.Uint64
}

// lastLong notes a refusal. It reports whether the key has refused for longer than any lease
// lasts; then its time begins anew.
func (f *refusals) lastLong(db int, key engine.Key) bool {
	slot, hash := f.find(db, key)
	began, now := slot.Load(), f.now()
	known := uint32(began>>32) == hash
	if known && now-uint32(began) <= f.longestLease() {
		return false
	}
	slot.Store(uint64(hash)<<32 | uint64(now))
	return known
}

// noLock notes that a look found data: from now on every refused try looks at the key.
func (f *refusals) noLock(db int, key engine.Key) {
	slot, hash := f.find(db, key)
	slot.Store(uint64(hash)<<32 | uint64(f.now()-f.longestLease()-1))
}

func (f *refusals) now() uint32 { return uint32(f.engine.Recent().Milliseconds()) }

// longestLease is how long a copy can last, in ms, with a second for the clocks.
func (f *refusals) longestLease() uint32 {
	return uint32((f.engine.MaxTTL + f.engine.Late + time.Second).Milliseconds())
}

func (f *refusals) find(db int, key engine.Key) (slot *atomic.Uint64, hash uint32) {
	hash = max(fnv1a(fnv1a(f.seed, string(key)), strconv.Itoa(db)), 1) // 0 is an empty slot
	return &f.slots[hash%refusalSlots], hash
}
