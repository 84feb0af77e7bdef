// Would this wait never end?
package redlock

import "slices"

// Owner is who waits and holds: a connection of this daemon.
type Owner interface {
	// Holds lists the leases that only this owner will release; runs tells of one
	// whether this daemon knows it to be running.
	Holds(runs func(Lease) bool) []Lease
}

// Lease names one lease of a daemon.
type Lease struct {
	DB    int
	Key   Key
	Token Token
}

// cycleSteps bounds a search: it runs under the lock of all lines.
const cycleSteps = 10_000

// found is an owner met on the way, and the key through which.
type found struct {
	owner Owner
	key   Key
	from  int // index of whoever led here, −1 for the first
}

// cycleLocked returns the keys of a circle that the wait would close: its owner
// holds a key, somebody waits for it who holds another, … who holds what this
// one waits for. nil if there is none, or none near enough to be found.
//
// A lease ends by itself, so such a circle is no deadlock for ever; it costs
// everybody in it the rest of their leases, and the last one can still be told.
func (s *waiters) cycleLocked(w *waiter) []Key {
	if w.request.Owner == nil {
		return nil
	}
	goals := w.request.keys()
	queue := []found{{w.request.Owner, "", -1}}
	met := map[Owner]bool{w.request.Owner: true}
	steps := 0
	for at := 0; at < len(queue); at++ {
		for _, lease := range queue[at].owner.Holds(s.locker.running) {
			if steps++; steps > cycleSteps {
				return nil
			}
			held := place{lease.DB, lease.Key}
			if lease.DB == w.request.DB && slices.Contains(goals, lease.Key) && s.keepsLocked(w, lease) {
				return circle(lease.Key, queue, at)
			}
			for _, ln := range s.at[held] {
				stuck := false // nobody passes whom the lease keeps waiting
				for other := ln.head; other != nil && steps <= cycleSteps; other = other.next {
					steps++
					stuck = stuck || s.inTheWay(other, lease)
					if owner := other.request.Owner; stuck && owner != nil && !met[owner] {
						met[owner] = true
						queue = append(queue, found{owner, lease.Key, at})
					}
				}
			}
		}
	}
	return nil
}

// keepsLocked tells whether a lease keeps the waiter from its lock, or somebody
// behind whom it stands, or would stand, in its line.
func (s *waiters) keepsLocked(w *waiter, l Lease) bool {
	if s.inTheWay(w, l) {
		return true
	}
	ln := s.lines[w.lineID()]
	if ln == nil {
		return false
	}
	steps := 0
	for other := ln.head; other != nil && other != w && steps < cycleSteps; other = other.next {
		if steps++; s.inTheWay(other, l) {
			return true
		}
	}
	return false
}

// circle lists the keys from what the last one waits for back to it.
func circle(goal Key, queue []found, at int) []Key {
	keys := []Key{goal}
	for ; at > 0; at = queue[at].from {
		keys = append(keys, queue[at].key)
	}
	return keys
}

// running tells whether this daemon knows that the lease runs now.
func (l *Locker) running(one Lease) bool {
	known, ok := l.leases.find(lockID{one.DB, one.Key, one.Token})
	return ok && known.until > l.recent()
}
