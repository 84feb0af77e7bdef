package proxy

// memlimit.go limits the memory of all unauthenticated clients together. Each connection
// has a small buffer that is not counted; every honest login fits it. All memory beyond
// is reserved from one limit. When that is exceeded, the oldest reservation is evicted:
// an honest client needs its reservation for a round trip, a client that sends half a
// command and stops would keep it for ever.

import "sync"

// memLimit is a number of bytes that reservations share. The limit of all clients' buffers
// works the same way, but evicts the largest reservation first: honest clients are small
// there. One user may have half of it.
type memLimit struct {
	max          int  // bytes
	evictLargest bool // evict the largest reservation first, and count users

	mu             sync.Mutex
	used           int
	users          map[string]int  // bytes of each user, with evictLargest
	oldest, newest *memReservation // a list in order of creation
}

// memReservation is the part of a memLimit that one connection uses. It holds nothing until
// it grows, and may be evicted at any time. evict is then called once, without any lock.
// The owner frees the memory itself a moment later.
type memReservation struct {
	limit *memLimit
	evict func()

	// Guarded by memLimit.mu.
	user       string // "" is not counted as a user
	size       int
	ended      bool // evicted or closed: it cannot grow anymore
	prev, next *memReservation
}

// grow makes the reservation at least size bytes. It returns false if this reservation
// itself is evicted by that, or was evicted before.
func (r *memReservation) grow(size int) bool {
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
	l.countLocked(r, -r.size)
	switch r.user = user; {
	case size == 0:
		l.removeLocked(r)
	case r.size == 0:
		l.linkLocked(r)
	}
	l.countLocked(r, size)
	r.size = size
	var evicted []*memReservation
	for victim := l.victimLocked(r.user); victim != nil; victim = l.victimLocked(r.user) {
		l.unlinkLocked(victim)
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
		return l.oldest
	case l.used > l.max:
		return l.largestLocked(func(*memReservation) bool { return true })
	case l.evictLargest && user != "" && l.users[user] > l.max/2:
		return l.largestLocked(func(r *memReservation) bool { return r.user == user })
	}
	return nil
}

// largestLocked is called when the limit is exceeded: a scan of some thousand reservations
// costs less than closing a connection.
func (l *memLimit) largestLocked(among func(*memReservation) bool) (victim *memReservation) {
	for r := l.oldest; r != nil; r = r.next {
		if among(r) && (victim == nil || r.size > victim.size) {
			victim = r
		}
	}
	return victim
}

// countLocked adds bytes to the sums.
func (l *memLimit) countLocked(r *memReservation, bytes int) {
	l.used += bytes
	if !l.evictLargest || r.user == "" {
		return
	}
	if l.users == nil {
		l.users = make(map[string]int)
	}
	if l.users[r.user] += bytes; l.users[r.user] == 0 {
		delete(l.users, r.user)
	}
}

// bytes is the sum of all reservations.
func (l *memLimit) bytes() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.used
}

// release frees the reservation, which may grow again.
func (r *memReservation) release() { r.drop(false) }

// end frees the reservation for good.
func (r *memReservation) end() { r.drop(true) }

func (r *memReservation) drop(forGood bool) {
	r.limit.mu.Lock()
	defer r.limit.mu.Unlock()
	r.limit.unlinkLocked(r)
	r.ended = forGood
}

func (l *memLimit) linkLocked(r *memReservation) {
	r.prev = l.newest
	if r.prev == nil {
		l.oldest = r
	} else {
		r.prev.next = r
	}
	l.newest = r
}

// unlinkLocked removes a reservation from the list, if it is there, and its bytes from
// the sums.
func (l *memLimit) unlinkLocked(r *memReservation) {
	l.countLocked(r, -r.size)
	l.removeLocked(r)
}

// removeLocked removes a reservation from the list, if it is there.
func (l *memLimit) removeLocked(r *memReservation) {
	if r.size == 0 {
		return
	}
	if r.prev == nil {
		l.oldest = r.next
	} else {
		r.prev.next = r.next
	}
	if r.next == nil {
		l.newest = r.prev
	} else {
		r.next.prev = r.prev
	}
	r.size, r.prev, r.next = 0, nil, nil
}
