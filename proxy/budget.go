package proxy

// budget.go answers: how much memory may all those have together who have not
// signed in? Each connection has a nook for nothing, in which every honest login
// fits. Whatever is beyond comes out of one budget; when that is used up, the
// share that was begun first is taken away: an honest client needs its for a
// round trip, somebody who parks half a command keeps it for ever.

import "sync"

type budget struct {
	most int // bytes

	mu             sync.Mutex
	held           int
	oldest, newest *share // a list in the order in which they were begun
}

// share is what one connection has of the budget. It is nobody's until it is
// used, and may be taken away at any time: evict is called then, once, without
// any lock. The memory itself is the owner's to let go, a moment later.
type share struct {
	budget *budget
	evict  func()

	// Guarded by budget.mu.
	size       int
	gone       bool // taken away, or at its end: there is nothing more for it
	prev, next *share
}

// raise makes the share at least size bytes; false says that it cannot be had,
// for this share itself is the oldest, or was taken away before.
func (s *share) raise(size int) bool {
	b := s.budget
	b.mu.Lock()
	if s.gone || size <= s.size {
		defer b.mu.Unlock()
		return !s.gone
	}
	if s.size == 0 {
		b.linkLocked(s)
	}
	b.held += size - s.size
	s.size = size
	var evicted []*share
	for b.held > b.most {
		victim := b.oldest
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
// of the sum.
func (b *budget) unlinkLocked(s *share) {
	if s.size == 0 {
		return
	}
	b.held -= s.size
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
