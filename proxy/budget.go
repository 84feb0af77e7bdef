package proxy

// budget.go answers: how much memory may all those have together who have not
// signed in? Each connection has a nook for nothing, in which every honest login
// fits. Whatever is beyond comes out of one budget; when that is used up, the
// share that was begun first is taken away: an honest client needs its for a
// round trip, somebody who parks half a command keeps it for ever.

import "sync"

// The budget of all clients' buffers works the same way, but its largest share goes
// first: honest clients are small there. One user may have half of it.
type budget struct {
	most    int  // bytes
	largest bool // the largest share goes first, and users are counted

	mu             sync.Mutex
	held           int
	users          map[string]int // bytes of each user, with largest
	oldest, newest *share         // a list in the order in which they were begun
}

// share is what one connection has of the budget. It is nobody's until it is
// used, and may be taken away at any time: evict is called then, once, without
// any lock. The memory itself is the owner's to let go, a moment later.
type share struct {
	budget *budget
	evict  func()

	// Guarded by budget.mu.
	user       string // "" is not counted as one
	size       int
	gone       bool // taken away, or at its end: there is nothing more for it
	prev, next *share
}

// raise makes the share at least size bytes; false says that it cannot be had,
// for this share itself has to go, or was taken away before.
func (s *share) raise(size int) bool {
	b := s.budget
	b.mu.Lock()
	if s.gone || size <= s.size {
		defer b.mu.Unlock()
		return !s.gone
	}
	return b.resizeAndUnlock(s, s.user, size)
}

// resize makes the share size bytes of that user's, 0 being none; false says that
// this share itself has to go.
func (s *share) resize(user string, size int) bool {
	b := s.budget
	b.mu.Lock()
	if s.gone {
		defer b.mu.Unlock()
		return true
	}
	return b.resizeAndUnlock(s, user, size)
}

func (b *budget) resizeAndUnlock(s *share, user string, size int) bool {
	b.countLocked(s, -s.size)
	switch s.user = user; {
	case size == 0:
		b.removeLocked(s)
	case s.size == 0:
		b.linkLocked(s)
	}
	b.countLocked(s, size)
	s.size = size
	var evicted []*share
	for victim := b.victimLocked(s.user); victim != nil; victim = b.victimLocked(s.user) {
		b.unlinkLocked(victim)
		victim.gone = true
		if victim != s {
			evicted = append(evicted, victim)
		}
	}
	had := !s.gone
	b.mu.Unlock()
	for _, victim := range evicted {
		victim.evict()
	}
	return had
}

// victimLocked is the share that has to go now that this user's has grown, nil if none.
func (b *budget) victimLocked(user string) *share {
	switch {
	case b.held > b.most && !b.largest:
		return b.oldest
	case b.held > b.most:
		return b.largestLocked(func(*share) bool { return true })
	case b.largest && user != "" && b.users[user] > b.most/2:
		return b.largestLocked(func(s *share) bool { return s.user == user })
	}
	return nil
}

// largestLocked is called when the budget is used up: looking at some thousand shares
// costs less than the closing.
func (b *budget) largestLocked(among func(*share) bool) (victim *share) {
	for s := b.oldest; s != nil; s = s.next {
		if among(s) && (victim == nil || s.size > victim.size) {
			victim = s
		}
	}
	return victim
}

// countLocked adds bytes to the sums.
func (b *budget) countLocked(s *share, bytes int) {
	b.held += bytes
	if !b.largest || s.user == "" {
		return
	}
	if b.users == nil {
		b.users = make(map[string]int)
	}
	if b.users[s.user] += bytes; b.users[s.user] == 0 {
		delete(b.users, s.user)
	}
}

// bytes is what all shares have.
func (b *budget) bytes() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.held
}

// release gives the share back; it may be begun again.
func (s *share) release() { s.leave(false) }

// end gives the share back for good.
func (s *share) end() { s.leave(true) }

func (s *share) leave(gone bool) {
	s.budget.mu.Lock()
	defer s.budget.mu.Unlock()
	s.budget.unlinkLocked(s)
	s.gone = gone
}

func (b *budget) linkLocked(s *share) {
	s.prev = b.newest
	if s.prev == nil {
		b.oldest = s
	} else {
		s.prev.next = s
	}
	b.newest = s
}

// unlinkLocked takes a share out of the list, if it is there, and its bytes out
// of the sums.
func (b *budget) unlinkLocked(s *share) {
	b.countLocked(s, -s.size)
	b.removeLocked(s)
}

// removeLocked takes a share out of the list, if it is there.
func (b *budget) removeLocked(s *share) {
	if s.size == 0 {
		return
	}
	if s.prev == nil {
		b.oldest = s.next
	} else {
		s.prev.next = s.next
	}
	if s.next == nil {
		b.newest = s.prev
	} else {
		s.next.prev = s.prev
	}
	s.size, s.prev, s.next = 0, nil, nil
}
