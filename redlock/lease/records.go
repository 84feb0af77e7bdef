// leaseRecords stores what this daemon knows about the leases it granted. Safety does not rest
// on it: a record only makes answers more precise (whether the lease was still valid when it was
// released) and keeps a stray copy from reviving a lapsed lease.

package lease

import (
	"cmp"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"redlockd/redlock/engine"
)

// allLanes are all masters, for leases whose copies are not known.
const allLanes = ^uint16(0)

// leaseRecord is what was promised last.
type leaseRecord struct {
	until time.Duration // end of the validity that the holder received
	gone  time.Duration // no copy that this daemon made lasts longer, see goneAt
	// copies are the masters that may hold one, as bits: only they must receive the release
	// later if they do not answer.
	copies  uint16
	kind    Kind
	linger  time.Duration // the copies outlast until by it
	fence   engine.Fence  // of the grant; 0 = another daemon's, not known
	granted time.Duration // 0 = by another daemon, or not known
	about   string        // what the masters keep of the holder for people; "" = nothing
	// requester is the client that took it, for people; nil = another daemon's, not known.
	requester *Requester
	// number identifies the record. An extension that is decided after a release of the same
	// token must not bring the record back.
	number uint64
}

// leaseRecords forget by generation: what was noted before the last two periods has expired,
// because no lease is longer than one. Forgetting costs nothing.
type leaseRecords struct {
	period time.Duration

	mu         sync.Mutex
	current    map[engine.LeaseID]leaseRecord
	previous   map[engine.LeaseID]leaseRecord
	rotated    time.Duration
	lastNumber uint64 // the last number given

	heldFor holdTimes
}

func newLeaseRecords(maxTTL time.Duration) *leaseRecords {
	return &leaseRecords{period: maxTTL + 5*time.Second, current: map[engine.LeaseID]leaseRecord{}, previous: map[engine.LeaseID]leaseRecord{}}
}

// note records a grant; a later end wins.
func (l *leaseRecords) note(id engine.LeaseID, n leaseRecord, now time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.noteLocked(id, n, now)
}

func (l *leaseRecords) noteLocked(id engine.LeaseID, n leaseRecord, now time.Duration) {
	if now-l.rotated > l.period {
		l.previous, l.current, l.rotated = l.current, map[engine.LeaseID]leaseRecord{}, now
	}
	if before, ok := l.findLocked(id); ok {
		n.until, n.gone, n.copies = max(n.until, before.until), max(n.gone, before.gone), n.copies|before.copies
		n.fence, n.about, n.requester = max(n.fence, before.fence), cmp.Or(n.about, before.about), cmp.Or(n.requester, before.requester)
		n.number = before.number
		if n.granted == 0 || before.granted > 0 && before.until > n.granted { // an extension, or granted once more
			n.granted = before.granted
		}
		delete(l.previous, id)
	} else {
		l.lastNumber++
		n.number = l.lastNumber
	}
	l.current[id] = n
}

// findOrAdd returns the record of a lease that is about to be extended. Nothing is known of a
// lease that another daemon granted: it gets an empty record, so that a release in the meantime
// has something to drop.
func (l *leaseRecords) findOrAdd(id engine.LeaseID, now time.Duration) leaseRecord {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known, ok := l.findLocked(id); ok {
		return known
	}
	l.noteLocked(id, leaseRecord{copies: allLanes}, now)
	return l.current[id]
}

// prolong records an extension of a lease that findOrAdd returned, unless the lease has been
// released meanwhile. It returns the former record.
func (l *leaseRecords) prolong(id engine.LeaseID, n leaseRecord, number uint64, now time.Duration) leaseRecord {
	l.mu.Lock()
	defer l.mu.Unlock()
	known, ok := l.findLocked(id)
	if ok && known.number == number {
		l.noteLocked(id, n, now)
	}
	return known
}

// update changes the record of a lease, unless the lease has been released, and returns it.
func (l *leaseRecords) update(id engine.LeaseID, change func(*leaseRecord)) (known leaseRecord, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known, ok = l.findLocked(id); ok {
		change(&known)
		delete(l.previous, id)
		l.current[id] = known
	}
	return known, ok
}

func (l *leaseRecords) dropIfEmpty(id engine.LeaseID) {
	l.dropIf(id, func(known leaseRecord) bool { return known.until == 0 })
}

// dropGrant forgets a lease that was given back, unless it has been granted again since.
func (l *leaseRecords) dropGrant(id engine.LeaseID, fence engine.Fence) {
	l.dropIf(id, func(known leaseRecord) bool { return known.fence == fence })
}

func (l *leaseRecords) dropIf(id engine.LeaseID, drops func(leaseRecord) bool) (known leaseRecord, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known, ok = l.findLocked(id); ok && drops(known) {
		delete(l.current, id)
		delete(l.previous, id)
	}
	return known, ok
}

// release forgets a lease that ends now.
func (l *leaseRecords) release(id engine.LeaseID, now time.Duration) (leaseRecord, bool) {
	was, ok := l.dropIf(id, func(leaseRecord) bool { return true })
	if was.granted > 0 && was.until > now {
		l.heldFor.note(now - was.granted)
	}
	return was, ok
}

// maxCounted records of a generation are looked at by held: lock requests wait meanwhile.
const maxCounted = 1024

// held is how many leases run. Of a generation with more than maxCounted records it is an
// estimate from so many of them.
func (l *leaseRecords) held(now time.Duration) (sum int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, generation := range []map[engine.LeaseID]leaseRecord{l.current, l.previous} {
		seen, running := 0, 0
		for _, known := range generation {
			if known.until > now && known.granted > 0 {
				running++
			}
			if seen++; seen == maxCounted {
				break
			}
		}
		sum += running * len(generation) / max(seen, 1)
	}
	return sum
}

// heldBy counts the leases that run by the client that took them. Every maxCounted records it lets
// lock requests pass.
func (l *leaseRecords) heldBy(now time.Duration) map[int64]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	seen, sum := 0, map[int64]int{}
	for _, generation := range []map[engine.LeaseID]leaseRecord{l.current, l.previous} {
		for _, known := range generation {
			if known.until > now && known.requester != nil {
				sum[known.requester.ID]++
			}
			if seen++; seen%maxCounted == 0 {
				l.mu.Unlock()
				l.mu.Lock()
			}
		}
	}
	return sum
}

func (l *leaseRecords) find(id engine.LeaseID) (leaseRecord, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.findLocked(id)
}

func (l *leaseRecords) findLocked(id engine.LeaseID) (leaseRecord, bool) {
	if known, ok := l.current[id]; ok {
		return known, true
	}
	known, ok := l.previous[id]
	return known, ok
}

// holdBuckets are those below 1 ms, 4 ms, 16 ms and so on to 18.6 h, and one beyond.
const holdBuckets = 15

// HoldTimes counts released leases by how long they were held.
type HoldTimes struct {
	Counts [holdBuckets]uint64 // see Bound; the last one has what is longer
	Sum    time.Duration
}

// Bound is where bucket i ends.
func (HoldTimes) Bound(i int) time.Duration { return time.Millisecond << (2 * i) }

// holdTimes counts while others read.
type holdTimes struct {
	counts [holdBuckets]atomic.Uint64
	sum    atomic.Int64
}

func (h *holdTimes) note(held time.Duration) {
	doublings := bits.Len64(uint64(max(held, 0) / time.Millisecond))
	h.counts[min((doublings+1)/2, holdBuckets-1)].Add(1)
	h.sum.Add(int64(held))
}

func (h *holdTimes) load() (t HoldTimes) {
	for i := range h.counts {
		t.Counts[i] = h.counts[i].Load()
	}
	t.Sum = time.Duration(h.sum.Load())
	return t
}
