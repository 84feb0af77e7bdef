package proxy

// memlimit.go limits the memory of all unauthenticated clients together. Each connection
// has a small buffer that is not counted; every honest login fits it. All memory beyond
// is reserved from one limit. When that is exceeded, the oldest reservation is evicted:
// an honest client needs its reservation for a round trip, a client that sends half a
// command and stops would keep it for ever.

import (
	"container/list"
	"sync"

	"redlockd/proxy/preauth"
)

// memLimit is a number of bytes that reservations share. The limit of all clients' buffers
// works the same way, but evicts the largest reservation of the user that uses most: honest clients are
// small there, and nobody pays for what another user's clients leave unread. One user may have half of it.
type memLimit struct {
	max          int  // bytes
	evictLargest bool // count users, and evict the largest reservation of the one that uses most

	mu    sync.Mutex
	used  int
	users map[string]int // bytes of each user, with evictLargest
	list  list.List      // of the *memReservation that hold something, the oldest first
}

// memReservation is the part of a memLimit that one connection uses. It holds nothing until
// it grows, and may be evicted at any time. evict is then called once, without any lock.
// The owner frees the memory itself a moment later.
type memReservation struct {
	limit *memLimit
	evict func()

	// Guarded by memLimit.mu.
	user    string // "" is not counted as a user
	size    int
	ended   bool          // evicted or closed: it cannot grow anymore
	element *list.Element // of memLimit.list, nil while it holds nothing
}

// Grow makes the reservation at least size bytes. It returns false if this reservation
// itself is evicted by that, or was evicted before.
func (r *memReservation) Grow(size int) bool {
	l := r.limit
	l.mu.Lock()
	if r.ended || size <= r.size {
		defer l.mu.Unlock()
		return !r.ended
	}
	return l.resizeAndUnlock(r, r.user, size)
}

// resize sets the reservation to size bytes of that user, 0 being none. It returns false
// if this reservation itself is evicted by that.
func (r *memReservation) resize(user string, size int) bool {
	l := r.limit
	l.mu.Lock()
	if r.ended {
		defer l.mu.Unlock()
		return true
	}
	return l.resizeAndUnlock(r, user, size)
}

func (l *memLimit) resizeAndUnlock(r *memReservation, user string, size int) bool {
	l.setLocked(r, user, size)
	var evicted []*memReservation
	for victim := l.victimLocked(r.user); victim != nil; victim = l.victimLocked(r.user) {
		l.setLocked(victim, victim.user, 0)
		victim.ended = true
		if victim != r {
			evicted = append(evicted, victim)
		}
	}
	kept := !r.ended
	l.mu.Unlock()
	for _, victim := range evicted {
		victim.evict()
	}
	return kept
}

// victimLocked returns the reservation to evict after this user's has grown, nil if none.
func (l *memLimit) victimLocked(user string) *memReservation {
	switch {
	case l.used > l.max && !l.evictLargest:
		return l.list.Front().Value.(*memReservation)
	case l.used > l.max:
		heaviest := l.heaviestLocked()
		return l.largestLocked(func(r *memReservation) bool { return r.user == heaviest })
	case l.evictLargest && user != "" && l.users[user] > l.max/2:
		return l.largestLocked(func(r *memReservation) bool { return r.user == user })
	}
	return nil
}

// heaviestLocked is the user with most bytes. A client without a user counts for itself.
func (l *memLimit) heaviestLocked() (heaviest string) {
	most := 0
	if largest := l.largestLocked(func(r *memReservation) bool { return r.user == "" }); largest != nil {
		most = largest.size
	}
	for user, bytes := range l.users {
		if bytes > most || bytes == most && user < heaviest {
			heaviest, most = user, bytes
		}
	}
	return heaviest
}

// largestLocked is called when the limit is exceeded: a scan of some thousand reservations
// costs less than closing a connection.
func (l *memLimit) largestLocked(among func(*memReservation) bool) (victim *memReservation) {
	for e := l.list.Front(); e != nil; e = e.Next() {
		if r := e.Value.(*memReservation); among(r) && (victim == nil || r.size > victim.size) {
			victim = r
		}
	}
	return victim
}

func (l *memLimit) setLocked(r *memReservation, user string, size int) {
	l.countLocked(r.user, -r.size)
	l.countLocked(user, size)
	switch {
	case size == 0 && r.element != nil:
		l.list.Remove(r.element)
		r.element = nil
	case size > 0 && r.element == nil:
		r.element = l.list.PushBack(r)
	}
	r.user, r.size = user, size
}

// countLocked adds bytes to the sums.
func (l *memLimit) countLocked(user string, bytes int) {
	l.used += bytes
	if !l.evictLargest || user == "" {
		return
	}
	if l.users == nil {
		l.users = make(map[string]int)
	}
	if l.users[user] += bytes; l.users[user] == 0 {
		delete(l.users, user)
	}
}

// bytes is the sum of all reservations.
func (l *memLimit) bytes() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.used
}

// Release frees the reservation, which may grow again.
func (r *memReservation) Release() { r.free(false) }

// End frees the reservation for good.
func (r *memReservation) End() { r.free(true) }

func (r *memReservation) free(forGood bool) {
	r.limit.mu.Lock()
	defer r.limit.mu.Unlock()
	r.limit.setLocked(r, r.user, 0)
	r.ended = forGood
}

var _ preauth.Memory = (*memReservation)(nil)
