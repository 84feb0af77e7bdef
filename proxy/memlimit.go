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
type budget struct {
	most    int  // bytes
	largest bool // evict the largest reservation first, and count users

	mu             sync.Mutex
	held           int
	users          map[string]int // bytes of each user, with evictLargest
	oldest, newest *share         // a list in order of creation
}

// memReservation is the part of a memLimit that one connection uses. It holds nothing until
// it grows, and may be evicted at any time. evict is then called once, without any lock.
// The owner frees the memory itself a moment later.
type share struct {
	budget *budget
	evict  func()

	// Guarded by memLimit.mu.
	user       string // "" is not counted as a user
	size       int
	gone       bool // evicted or closed: it cannot grow anymore
	prev, next *share
}

// grow makes the reservation at least size bytes. It returns false if this reservation
// itself is evicted by that, or was evicted before.
func (r *share) raise(size int) bool {
	l := r.budget
	l.mu.Lock()
	if r.gone || size <= r.size {
		defer l.mu.Unlock()
		return !r.gone
	}
	return l.resizeAndUnlock(r, r.user, size)
}

// resize sets the reservation to size bytes of that user, 0 being none. It returns false
// if this reservation itself is evicted by that.
func (r *share) resize(user string, size int) bool {
	l := r.budget
	l.mu.Lock()
	if r.gone {
		defer l.mu.Unlock()
		return true
	}
	return l.resizeAndUnlock(r, user, size)
}

func (l *budget) resizeAndUnlock(r *share, user string, size int) bool {
	l.countLocked(r, -r.size)
	switch r.user = user; {
	case size == 0:
		l.removeLocked(r)
	case r.size == 0:
		l.linkLocked(r)
	}
	l.countLocked(r, size)
	r.size = size
	var evicted []*share
	for victim := l.victimLocked(r.user); victim != nil; victim = l.victimLocked(r.user) {
		l.unlinkLocked(victim)
		victim.gone = true
		if victim != r {
			evicted = append(evicted, victim)
		}
	}
	kept := !r.gone
	l.mu.Unlock()
	for _, victim := range evicted {
		victim.evict()
	}
	return kept
}

// victimLocked returns the reservation to evict after this user's has grown, nil if none.
func (l *budget) victimLocked(user string) *share {
	switch {
	case l.held > l.most && !l.largest:
		return l.oldest
	case l.held > l.most:
		return l.largestLocked(func(*share) bool { return true })
	case l.largest && user != "" && l.users[user] > l.most/2:
		return l.largestLocked(func(r *share) bool { return r.user == user })
	}
	return nil
}

// largestLocked is called when the limit is exceeded: a scan of some thousand reservations
// costs less than closing a connection.
func (l *budget) largestLocked(among func(*share) bool) (victim *share) {
	for r := l.oldest; r != nil; r = r.next {
		if among(r) && (victim == nil || r.size > victim.size) {
			victim = r
		}
	}
	return victim
}

// countLocked adds bytes to the sums.
func (l *budget) countLocked(r *share, bytes int) {
	l.held += bytes
	if !l.largest || r.user == "" {
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
func (l *budget) bytes() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held
}

// release frees the reservation, which may grow again.
func (r *share) release() { r.leave(false) }

// end frees the reservation for good.
func (r *share) end() { r.leave(true) }

func (r *share) leave(forGood bool) {
	r.budget.mu.Lock()
	defer r.budget.mu.Unlock()
	r.budget.unlinkLocked(r)
	r.gone = forGood
}

func (l *budget) linkLocked(r *share) {
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
func (l *budget) unlinkLocked(r *share) {
	l.countLocked(r, -r.size)
	l.removeLocked(r)
}

// removeLocked removes a reservation from the list, if it is there.
func (l *budget) removeLocked(r *share) {
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
